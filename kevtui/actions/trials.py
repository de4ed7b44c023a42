"""Actions on one piece of work: resume a trial, pull a study or a read, cancel, mirror a study's checkpoints."""

from decimal import Decimal
from typing import Final

from kev.errors import KevError, NotFound, UsageError
from kev.ledger.units import Unit, trial_id
from kev.rounds.resume import check_continuable
from kev.rounds.status import state_of
from kevtui import format as shown
from kevtui.actions.checks import MONEY
from kevtui.actions.proposal import Check, Proposal, Wish, digest_of, place_of
from kevtui.actions.requests import find_latest
from kevtui.actions.truth import Truth, guarded, known
from kevtui.actions.verbs import VERBS, Weight


def propose_resume(truth: Truth, wish: Wish) -> Proposal:
    unit = _unit(truth, wish)
    loaded = truth.round_of([unit], wish.round)
    study, label = unit.order.name, unit.order.label or ""
    left = unit.attempts_left
    beyond = left == 0
    bound = unit.order.attempt_usd * max(1, left)
    checks = [
        *_continuable(unit),
        Check("it has an attempt left", not beyond or wish.beyond_bound,
              f"{len(unit.counted)} of {unit.order.attempts} used" + (
                  "" if not beyond or wish.beyond_bound else "; one more is beyond what it was admitted for")),
        *guarded("the session is not paused", lambda: [truth.not_paused(continues=True)]),
        *guarded(MONEY, lambda: truth.money_checks(bound, own=[unit.id])),
        Check("its lease is over", None, "the engine waits until it is, before anything starts"),
    ]  # fmt: skip
    over = wish.beyond_bound and beyond
    return Proposal(
        verb="resume",
        target=f"{study}/{label}",
        root=str(truth.root),
        command=("-m", "kev.rounds", "resume", *truth.options(loaded), "--trial", f"{study}/{label}",
                 *(["--beyond-bound", study] if over else [])),
        state=_state(unit),
        weight=VERBS["resume"].weight,
        checks=tuple(checks),
        facts=(
            ("attempt", f"{len(unit.counted) + 1} of {unit.order.attempts + over}"),
            ("card", f"{unit.order.gpu or shown.MISSING}, {shown.age(unit.order.timeout)}"),
            *known(lambda: truth.money_facts(bound, own=[unit.id])),
        ),
        lasting="an attempt that was started counts, and costs until it ends",
        typed=study if over or bound > Decimal(str(wish.name_above_usd)) else "",
        bound=str(bound),
        before=state_of(unit),
        after=f"attempt {len(unit.counted) + 1}",
        **truth.record(),
    )  # fmt: skip


def propose_pull(truth: Truth, wish: Wish) -> Proposal:
    name = wish.target
    started = [unit for unit in truth.units.by_id.values() if unit.counted]
    if name is None:
        names = list(dict.fromkeys(unit.order.name for unit in started))
        if len(names) != 1:
            raise UsageError(f"what should be pulled? There are {', '.join(names[-8:]) or 'no studies yet'}")
        name = names[0]
    units = [unit for unit in started if unit.order.name == name]
    loaded = truth.round_of(units, wish.round)
    detail = "" if units else "the ledger has no study and no read of that name that was started"
    options = ["--weights"] if wish.weights else []
    return Proposal(
        verb="pull",
        target=name,
        root=str(truth.root),
        command=("-m", "kev.rounds", "pull", *truth.options(loaded), "--name", name, *options),
        state=digest_of([name, wish.weights, *(_state(unit) for unit in units)]),
        weight=VERBS["pull"].weight,
        checks=(Check("it was started", bool(units), detail),),
        facts=(
            ("brings", "weights as well" if wish.weights else "everything but weights"),
            ("to", ", ".join(dict.fromkeys(unit.order.local for unit in units)) or shown.MISSING),
            ("costs", "nothing; files that are here already are kept"),
        ),
        before="as it was",
        after="everything that is committed",
        **truth.record(),
    )


def propose_cancel(truth: Truth, wish: Wish) -> Proposal:
    unit = _unit(truth, wish)
    loaded = truth.round_of([unit], wish.round)
    order = unit.order
    reason = wish.reason or "asked for without a reason"
    lost = (
        "nothing: it has not started" if not unit.counted
        else "the read; a test that was begun is not read again" if order.kind != "trial"
        else "all of it: such a trial keeps nothing before its end" if order.attempts == 1
        else "what ran after its last resume point"
    )  # fmt: skip
    return Proposal(
        verb="cancel",
        target=f"{order.name}/{order.label}" if order.kind == "trial" else unit.id,
        root=str(truth.root),
        command=("-m", "kev.rounds", "cancel", *truth.options(loaded), "--unit", unit.id, "--reason", reason, "--yes"),
        state=_state(unit),
        weight=VERBS["cancel"].weight,
        checks=(Check("it is not over", not unit.settled, f"it is {unit.outcome}" if unit.settled else ""),),
        facts=(
            ("state", f"{state_of(unit)}, attempt {len(unit.counted)} of {order.attempts}"),
            ("call", (unit.live.call if unit.live else None) or shown.MISSING),
            ("card", order.gpu or shown.MISSING),
            ("gives back", f"at most {shown.money(unit.rest())}"),
            ("is lost", lost),
        ),
        lasting=f"a cancelled call is never continued; lost: {lost}",
        typed=order.name,
        already=f"it is over: {unit.outcome}" if unit.outcome == "cancelled" else "",
        before=state_of(unit),
        after="cancelled",
        **truth.record(),
    )


DRY_RUN: Final = " (dry run)"
"""After the name of a study: its sizes are listed, and nothing is uploaded."""


def propose_mirror(truth: Truth, wish: Wish) -> Proposal:
    """First the dry run, which lists sizes; once that was seen for this state, the upload."""
    named = _named(wish, "study")
    study = named.removesuffix(DRY_RUN)
    names = sorted({unit.order.name for unit in truth.units.by_id.values() if unit.order.kind == "trial"})
    state = digest_of([study, *(_state(unit) for unit in truth.units.of_name(study))])
    seen = find_latest(truth.runs, place_of("mirror", study + DRY_RUN), state)
    dry = seen is None or not seen.ok or named != study
    command = ("-m", "modal", "run", "modal_app.py::mirror_snapshots", "--study", study)
    checks = (
        Check("the study was launched here", study in names,
              "" if study in names else f"there are {', '.join(names[-4:]) or 'none'}"),
        Check("its sizes are listed first", True, "this is the dry run" if dry else "by the dry run before"),
        Check("the owner approves uploads of large checkpoints", None, "nobody can tell that from here"),
    )  # fmt: skip
    return Proposal(
        verb="mirror",
        target=study + DRY_RUN if dry else study,
        root=str(truth.root),
        command=(*command, "--dry-run") if dry else command,
        state=state,
        weight=Weight.SAFE if dry else Weight.IRREVERSIBLE,
        checks=checks,
        facts=(("does", "lists what would be uploaded, and uploads nothing" if dry else "uploads every checkpoint"),),
        lasting="" if dry else "what was uploaded is with the repository's owner",
        typed="" if dry else study,
        before="on the volume",
        after="listed" if dry else "in the repository as well",
        **truth.record(),
    )


def _unit(truth: Truth, wish: Wish) -> Unit:
    """The unit that a target names: `study/trial-0`, or an id as `status` prints it."""
    named = _named(wish, "study/trial")
    study, _, label = named.partition("/")
    unit = truth.units.by_id.get(named) or truth.units.by_id.get(trial_id(study, label))
    if unit is None:
        known = [f"{each.order.name}/{each.order.label}" for each in truth.units.by_id.values()
                 if each.order.kind == "trial"]  # fmt: skip
        raise NotFound(f"{named}: not in the ledger; there are {', '.join(known[-6:]) or 'no trials yet'}")
    return unit


def _named(wish: Wish, what: str) -> str:
    if not wish.target:
        raise UsageError(f"{wish.verb} needs its target, a {what}, also where there is only one")
    return wish.target


def _continuable(unit: Unit) -> list[Check]:
    text = "it was cut off and does not run"
    try:
        check_continuable(unit)
    except KevError as error:
        return [Check(text, False, str(error))]
    return [Check(text, True, unit.current.outcome or "" if unit.current else "")]


def _state(unit: Unit) -> str:
    current = unit.current
    return digest_of([unit.id, len(unit.counted), unit.outcome, current.outcome if current else None, unit.settled])
