"""From a key to an action: what the key means where the cursor is, the dialog, and what was agreed to."""

from typing import TYPE_CHECKING, Any

from kevtui import format as figures
from kevtui.actions.verbs import VERBS, Weight
from kevtui.deliberate import Typing
from kevtui.keymap import Binding, looking
from kevtui.observe.snapshot import Snapshot
from kevtui.screens.action_dialog import ActionDialog, Agreed
from kevtui.screens.fields import FieldsScreen
from kevtui.widgets.header import CONTROL, READ_ONLY
from kevtui.widgets.line import Role

if TYPE_CHECKING:
    from kevtui.actions.sight import Sight
    from kevtui.screens.watch import WatchScreen

FIELDS = {
    "open": ("name of the session", "what it may spend in all, in US dollars"),
    "cancel": ("why (goes on record; may stay empty)",),
}
"""What must be said before the action can be proposed."""


def begin(screen: "WatchScreen", verb: str, typing: Typing) -> None:
    """Begin an action on what is under the cursor, if the key was one that was meant."""
    if not typing.is_fresh() or screen.snapshot is None or screen.actions.hands is None:
        return
    target = target_of(verb, screen.snapshot, screen.trial_id)
    verb = "reads" if verb == "stage_reads" else verb
    if target is None and verb in ("resume", "cancel", "pull", "mirror"):
        screen.notify("No trial is under the cursor", timeout=3)
        return
    going_on = screen.actions.under_way(verb, target)
    if going_on:
        screen.notify(f"{verb} {target}: is {going_on}", markup=False, timeout=4)
        return
    if verb in FIELDS:
        _ask_fields(screen, verb, target, typing)
    elif VERBS[verb].weight is Weight.SAFE:
        count = typing.count

        def settle() -> None:
            if typing.count == count:
                screen.actions.agree(verb, target or "", _options(screen, verb))

        screen.set_timer(typing.settle_s, settle)
    else:
        open_dialog(screen, verb, target, _options(screen, verb), typing)


def open_dialog(
    screen: "WatchScreen", verb: str, target: str | None, options: list[str], typing: Typing,
    report: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Show what an action would do; do it once it is agreed to."""
    hands = screen.actions.hands
    if hands is None:
        return

    async def propose() -> dict[str, Any]:
        return await hands.propose(verb, target, options)

    def agreed(answer: Agreed | None) -> None:
        if answer is None:
            return
        shown = answer.report
        given = [*options, "--yes", "--expect", str(shown["id"])]
        given += ["--name", answer.name] if answer.name else []
        screen.actions.agree(verb, str(shown["target"]), given)

    danger = VERBS[verb].weight is not Weight.SAFE
    dialog = ActionDialog(VERBS[verb].heading(target), propose, typing, screen.ink, danger=danger, report=report)
    screen.app.push_screen(dialog, agreed)


def refusal(report: dict[str, Any]) -> str:
    """Why an action was not started, in a line."""
    return f"{report.get('verb')} {report.get('target')}: {report.get('text') or report.get('state')}"


def show_refusal(screen: "WatchScreen", report: dict[str, Any], typing: Typing) -> None:
    """An action that was not started shows its checklist, where there is one."""
    if report.get("checks") and report.get("state") == "refused" and screen.is_current:
        open_dialog(screen, str(report["verb"]), str(report["target"]), [], typing, report)


def target_of(verb: str, snapshot: Snapshot, trial: str | None) -> str | None:
    """What `verb` is about: the trial under the cursor, its study, the round, its next stage, or the session."""
    match verb:
        case "resume" | "cancel":
            return trial
        case "pull" | "mirror":
            return trial.partition("/")[0] if trial else None
        case "open":
            return None
        case "close" | "refresh" | "pause" | "unpause":
            return snapshot.session
    name = round_of(snapshot)
    if name is not None and verb in ("confirm", "stage_reads"):
        open_stages = [verdict.stage for verdict in snapshot.verdicts if not verdict.source]
        return f"{name}/{open_stages[0]}" if open_stages else name
    return name


def round_of(snapshot: Snapshot) -> str | None:
    """The round on the screen, as `kevtui act` would be given it."""
    if snapshot.round is not None and (snapshot.spec or "").endswith(f"r{snapshot.round}.json"):
        return f"r{snapshot.round}"
    return snapshot.spec


def _options(screen: "WatchScreen", verb: str) -> list[str]:
    name = round_of(screen.snapshot) if screen.snapshot else None
    if name and verb in ("resume", "cancel", "pull", "pause", "unpause", "open"):
        return ["--round", name]
    return []


def _ask_fields(screen: "WatchScreen", verb: str, target: str | None, typing: Typing) -> None:
    def filled(values: tuple[str, ...] | None) -> None:
        if values is None:
            return
        options = _options(screen, verb)
        name = target
        if verb == "open":
            name, options = values[0], [*options, "--authorization", values[1] or "0"]
        elif values[0]:
            options += ["--reason", values[0]]
        open_dialog(screen, verb, name, options, typing)

    fields = FieldsScreen(VERBS[verb].heading(target), FIELDS[verb], ascii=screen.ink.ascii_only)
    screen.app.push_screen(fields, filled)


# -------------------------------------------------------------------------------------------------------- control


def mode(sight: "Sight", *, may_act: bool) -> tuple[str, Role, str]:
    """What the header says, in which role, and what is worth a notice."""
    if sight.mine and sight.asked is not None:
        asks = f"{sight.asked.who} asks for control"
        return f"{CONTROL} · {asks} (a)", Role.WARN, f"{asks}: a gives it"
    if sight.mine:
        return CONTROL, Role.ACCENT, ""
    if sight.holder is not None and sight.holder.process:
        since = figures.clock(sight.holder.since_at)
        ask = "; a asks for it" if may_act else ""
        told = f"{sight.holder.describe()} has control since {since}{ask}"
        return f"{READ_ONLY} · {sight.holder.describe()} since {since}", Role.ACCENT, told if may_act else ""
    if may_act:
        return f"{READ_ONLY} · control is free (a)", Role.ACCENT, sight.trouble
    return READ_ONLY, Role.ACCENT, ""


def bindings(table: tuple[Binding, ...], sight: "Sight") -> tuple[Binding, ...]:
    """The bindings that are there: all with control; without it, those that look, and the one that asks for it."""
    if sight.mine:
        return table
    there = set(looking(table))
    return tuple(binding for binding in table if binding in there or binding.id == "control")


def ask_or_give(screen: "WatchScreen") -> None:
    """Ask for control, or give it; in a thread, since it waits for a disk."""
    import threading

    panel = screen.actions
    session = screen.snapshot.session if screen.snapshot else None

    def work() -> None:
        words = panel.ask_or_give(session)
        screen.app.call_from_thread(screen.notify, words, markup=False, timeout=5)
        screen.app.call_from_thread(panel.look)

    threading.Thread(target=work, name="control", daemon=True).start()


def show_output(screen: "WatchScreen", key: str) -> None:
    """Everything that an action on record has said."""
    import threading

    panel = screen.actions
    seen = panel.seen(key)
    if seen is None or screen.snapshot is None:
        return
    root = screen.snapshot.root

    def work() -> None:
        from pathlib import Path

        from kevtui.actions.requests import read_output
        from kevtui.screens.details import DetailsScreen

        output = read_output(Path(root) / "runs", seen.id)
        known = [
            (f"{seen.verb} {seen.target}", [("state", seen.state), ("id", seen.id), ("who", seen.who)]),
            ("What it said", [(f"{number}", line) for number, line in enumerate(output, start=1)]),
        ]
        screen.app.call_from_thread(screen.app.push_screen, DetailsScreen(known, ascii=screen.ink.ascii_only))

    threading.Thread(target=work, name="output", daemon=True).start()
