"""Actions on a session: open, close, read the meter, pause, unpause; and confirming a stage of its round."""

import re
from decimal import Decimal, InvalidOperation

from kev import files
from kev.budget import reserve
from kev.errors import KevError, NotFound, UsageError
from kev.rounds.guards import candidate_of
from kev.rounds.places import verdict_path
from kev.rounds.read_orders import has_landed, wanted_directories
from kev.rounds.sides import candidate_side, parent_side
from kev.rounds.specs import LoadedSpec
from kevtui import format as shown
from kevtui.actions.checks import stage_checks
from kevtui.actions.proposal import Check, Proposal, Wish, digest_of
from kevtui.actions.truth import Truth, guarded, known, round_name, spec_digest
from kevtui.actions.verbs import VERBS
from kevtui.observe.target import STATE_SUFFIX

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


def propose_open(truth: Truth, wish: Wish) -> Proposal:
    name = wish.target or ""
    amount = _amount(wish.authorization)
    kept = reserve(amount) if amount is not None else None
    state = truth.runs / f"{name}{STATE_SUFFIX}"
    there = state.name in files.list_names(truth.runs)
    spec = truth.round(wish.round).path if wish.round else None
    checks = (
        Check("it has a name", bool(_NAME.fullmatch(name)),
              "" if _NAME.fullmatch(name) else "1 to 80 letters, digits, _ or -, beginning with a letter or digit"),
        Check("it has an authorization", amount is not None,
              "" if amount is not None else "say with --authorization how many dollars it may spend in all"),
        Check("no session has that name", not there, f"{state}: is there already" if there else ""),
        Check("the meter can be read", None, "its reading is the baseline"),
    )  # fmt: skip
    given = [str(amount)] if amount is not None else []
    return Proposal(
        verb="open",
        target=name,
        root=str(truth.root),
        command=("-m", "kev.session", "open", name,
                 *(["--authorization", *given] if given else []),
                 *(["--round", str(spec.relative_to(truth.root))] if spec else []), "--json"),
        state=digest_of([name, there, amount]),
        weight=VERBS["open"].weight,
        checks=checks,
        facts=(
            ("authorization", shown.money(amount)),
            ("reserve", f"{shown.money(kept)}, never launched on"),
            ("round", round_name(truth.round(wish.round)) if wish.round else shown.MISSING),
        ),
        lasting="nothing is spent by it; it says what may be",
        typed=name if amount is not None and amount > Decimal(str(wish.name_above_usd)) else "",
        already="it is open" if there else "",
        bound=None,
        before="no session",
        after=f"may spend {shown.money(amount)}",
        session=name or None,
        state_file=str(state),
    )  # fmt: skip


def propose_close(truth: Truth, wish: Wish) -> Proposal:
    truth = _of_session(truth, wish)

    def open_work() -> list[Check]:
        live = [unit.id for unit in truth.units.open() if unit.live is not None]
        detail = f"{', '.join(live[:3])} may be running" if live else ""
        return [Check("nothing runs any more", not live, detail)]

    session = truth.session
    return Proposal(
        verb="close",
        target=session.name,
        root=str(truth.root),
        command=("-m", "kev.session", "close", "--session", _session_file(truth), "--json"),
        state=digest_of([files.read_bytes(truth.state_path)]),
        weight=VERBS["close"].weight,
        checks=tuple(guarded("the ledger can be read", open_work)),
        facts=tuple(fact for fact in known(lambda: truth.money_facts(Decimal(0))) if fact[0] != "bound"),
        lasting="nothing more is launched in it; another session needs a name of its own",
        typed=session.name,
        before="open",
        after="closed",
        **truth.record(),
    )


def propose_refresh(truth: Truth, wish: Wish) -> Proposal:
    truth = _of_session(truth, wish)
    session = truth.session
    return Proposal(
        verb="refresh",
        target=session.name,
        root=str(truth.root),
        command=("-m", "kev.session", "refresh", "--session", _session_file(truth),
                 "--json"),
        state=digest_of([len(session.readings)]),
        weight=VERBS["refresh"].weight,
        facts=(
            ("last reading", f"{shown.age(truth.reading_age_s)} old"),
            ("metered", shown.money(session.metered)),
        ),
        before=f"metered {shown.money(session.metered)}",
        after="a new reading",
        **truth.record(),
    )  # fmt: skip


def propose_pause(truth: Truth, wish: Wish) -> Proposal:
    return _switch(truth, wish, "hard" if wish.hard else "soft")


def propose_unpause(truth: Truth, wish: Wish) -> Proposal:
    return _switch(truth, wish, "running")


def _switch(truth: Truth, wish: Wish, mode: str) -> Proposal:
    truth = _of_session(truth, wish)
    loaded = truth.round(wish.round or truth.only_round())
    control = truth.control
    verb = "unpause" if mode == "running" else "pause"
    does = {
        "running": "new work may be started again, under the spend rule",
        "soft": "nothing new starts; what runs is continued and brought home",
        "hard": "nothing starts, is continued or fetched; what runs costs on",
    }[mode]
    options = ["--hard"] if mode == "hard" else []
    options += ["--reason", wish.reason] if wish.reason and mode != "running" else []
    by = f" by {control.who}: {control.reason}" if control.who else ""
    return Proposal(
        verb=verb,
        target=_session_file(truth),
        root=str(truth.root),
        command=("-m", "kev.rounds", verb, *truth.spec_options(loaded), "--session",
                 _session_file(truth), "--json", *options),
        state=digest_of([control.mode, control.at, mode]),
        weight=VERBS[verb].weight,
        facts=(("is now", control.mode + by), ("then", does)),
        already=f"it is {control.mode} already" if control.mode == mode else "",
        before=control.mode,
        after=mode,
        **truth.record(),
    )  # fmt: skip


def propose_confirm(truth: Truth, wish: Wish) -> Proposal:
    """A stage of a round, `r41/locked`; without one, the first that is not decided."""
    name, _, stage = (wish.target or truth.only_round()).partition("/")
    loaded = truth.round(name)
    arm, trouble = wish.arm, ""
    if arm is None:
        try:
            arm = candidate_of(loaded.spec, truth.root)
        except KevError as error:
            trouble = str(error)
    stage = stage or _next_stage(truth, loaded, arm)
    checks = [Check("the read-out names a candidate", not trouble, trouble)]
    if arm:
        checks += stage_checks(loaded, stage, arm)
        checks += guarded("every row of the stage is here", lambda: _rows(truth, loaded, stage, arm))
    path = verdict_path(loaded.spec, truth.root, stage, arm) if arm else None
    return Proposal(
        verb="confirm",
        target=f"{round_name(loaded)}/{stage}",
        root=str(truth.root),
        command=("-m", "kev.rounds", "confirm", *truth.spec_options(loaded), "--stage", stage,
                 *(["--arm", arm] if arm else [])),
        state=digest_of([spec_digest(loaded), stage, arm, path.exists() if path else None]),
        weight=VERBS["confirm"].weight,
        checks=tuple(checks),
        facts=(
            ("stage", stage),
            ("candidate", arm or shown.MISSING),
            ("criteria", str(len(loaded.spec.confirm[stage].criteria)) if stage in loaded.spec.confirm else "0"),
            ("writes", truth.shown(path) if path else shown.MISSING),
            ("costs", "nothing; its reads are made before"),
        ),
        lasting="a verdict is written once and never replaced, whatever it says",
        typed=stage,
        before="no verdict",
        after="decided",
        **truth.record(),
    )  # fmt: skip


def _rows(truth: Truth, loaded: LoadedSpec, stage: str, arm: str) -> list[Check]:
    spec = loaded.spec
    at = spec.confirm.get(stage)
    if at is None:
        return []
    sides = (candidate_side(spec, arm, at), parent_side(spec, arm, at))
    missing = [place for side in sides for _, place in wanted_directories(spec, side, at)
               if not has_landed(truth.root, place)]  # fmt: skip
    detail = f"not yet: {', '.join(missing[:3])}" if missing else ""
    return [Check("every row of the stage is here", not missing, detail)]


def _next_stage(truth: Truth, loaded: LoadedSpec, arm: str | None) -> str:
    if not loaded.spec.confirm:
        raise NotFound(f"round {loaded.spec.round} has no stage to confirm")
    for stage in loaded.spec.confirm:
        if arm is None or not verdict_path(loaded.spec, truth.root, stage, arm).exists():
            return stage
    return list(loaded.spec.confirm)[-1]


def _of_session(truth: Truth, wish: Wish) -> Truth:
    """The truth of the session that a target names, else of the one that is meant anyway."""
    return Truth(truth.root, truth.clock, wish.target or truth.wanted_session)


def _session_file(truth: Truth) -> str:
    return truth.state_path.name.removesuffix(STATE_SUFFIX)


def _amount(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        amount = Decimal(text.removeprefix("$").replace(",", ""))
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite() or amount <= 0:
        raise UsageError(f"--authorization {text!r:.40}: write an amount of US dollars above 0")
    return amount
