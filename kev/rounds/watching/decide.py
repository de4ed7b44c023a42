"""What is to be done about one unit, given what was seen of it. Pure: no clock, no disk, no network.

Only positive evidence ends anything: a provider that does not answer leaves every state as it is, however long.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kev.compute.lease_watch import Evidence, LeaseView
from kev.compute.protocol import CallState, Phase
from kev.ledger.units import Attempt, Unit
from kev.rounds.resume import CONTINUABLE
from kev.worker.orders import BLEND_RECORD

QUEUE_S = 6 * 3600.0
"""A container may wait this long for a machine, beyond its own timeout, before it is thought never to have come."""

SHORT_S = 300.0
"""An attempt that broke this soon did so before it could do anything: again and again, it is a crash loop."""

LOOP_OF_TRIAL, LOOP_OF_ROUND = 2, 3
BROKEN = frozenset({"failed", "lost", "refused"})


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt ended, and how."""

    outcome: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Settle:
    """Nothing more is to be spent on the unit."""

    outcome: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Pull:
    """Bring home what it wrote; then decide again."""


@dataclass(frozen=True, slots=True)
class Start:
    """Spawn its first attempt."""


@dataclass(frozen=True, slots=True)
class Look:
    """Read the trial's lease; then decide again."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Spawn the next attempt."""

    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ask the provider again to end a call that someone cancelled."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do but to look again; `text` says why."""

    text: str = ""


Action = Ended | Settle | Pull | Start | Look | Continue | Cancel | Wait


def end_of(unit: Unit, attempt: Attempt, state: CallState, now: float) -> Ended | Cancel | Wait:
    """What an answer of the provider says of a live attempt. `now` is Unix seconds."""
    match state.phase:
        case Phase.ACTIVE:
            return Cancel() if unit.cancelled_by else Wait()
        case Phase.SUCCEEDED:
            return _answered(state.result)
        case Phase.MISSING:
            # Another workspace answers like this too. What cannot be running any more has ended all the same.
            if now < attempt.at + unit.order.timeout + QUEUE_S:
                return Wait(f"the provider knows no call {attempt.call}; is this its workspace?")
    return Ended(state.phase.value, state.error)


def _answered(result: Any) -> Ended:
    if isinstance(result, dict) and "failed" in result:
        failed = result["failed"]
        words = f"{failed.get('type')}: {failed.get('message')}" if isinstance(failed, dict) else str(failed)
        return Ended("failed", words[:300])
    if isinstance(result, dict) and "refused" in result:
        return Ended("refused", str(result["refused"])[:300])
    return Ended("succeeded")


def next_step(unit: Unit, *, home: frozenset[str], pulled: bool, lease: LeaseView | None) -> Action:
    """What to do about a unit none of whose attempts is live.

    `home` are the names of the files in its local directory, `pulled` whether they were just fetched.
    """
    current = unit.current
    if current is None:
        return Settle("cancelled") if unit.cancelled_by else Start()
    if unit.order.kind == "sources":
        return Settle("silent")
    if current.outcome in ("succeeded", "expired"):
        return _bring_home(unit, current, home, pulled, lease)
    if unit.cancelled_by is not None or current.outcome == "cancelled":
        return Settle("cancelled", current.text or "")
    if current.outcome == "abandoned" and not pulled:
        return Pull()  # it may have been and gone: what it wrote tells
    if finished := _finished(unit, home):
        return finished
    return _go_on(unit, current, lease)


def _bring_home(unit: Unit, current: Attempt, home: frozenset[str], pulled: bool, lease: LeaseView | None) -> Action:
    if finished := _finished(unit, home):
        return finished
    if not pulled:
        return Pull()
    if current.outcome == "expired":
        return _go_on(unit, current, lease)
    return Settle("failed", "the call succeeded and left no result on the volume")


def _finished(unit: Unit, home: frozenset[str]) -> Settle | None:
    if unit.order.kind in ("trial", "rescore"):
        if "result.json" in home:
            return Settle("done")
        return Settle("failed", "failed.json is on the volume") if "failed.json" in home else None
    return Settle("done") if home & {"rows.json", "summary.json", BLEND_RECORD} else None


def _go_on(unit: Unit, current: Attempt, lease: LeaseView | None) -> Action:
    said = f"{current.outcome}{f': {current.text}' if current.text else ''}"
    if unit.order.kind != "trial" or current.outcome not in CONTINUABLE:
        return Settle("failed", said)
    if unit.order.attempts == 1:
        return Settle("failed", f"{said}; such a trial has one attempt")
    if not unit.attempts_left:
        return Settle("failed", f"{said}; all {unit.order.attempts} attempts are used")
    if is_crash_loop(unit.counted[-LOOP_OF_TRIAL:], LOOP_OF_TRIAL):
        return Settle("failed", f"{said}; {LOOP_OF_TRIAL} attempts in a row broke within {SHORT_S:.0f} s")
    if lease is None:
        return Look()
    return Continue(lease.evidence) if lease.may_continue else Wait()


def is_crash_loop(attempts: Iterable[Attempt], length: int) -> bool:
    """Whether `length` attempts, and no fewer, all broke as soon as they began. A timeout is no crash."""
    found = list(attempts)
    return len(found) == length and all(
        attempt.outcome in BROKEN and attempt.ended_at is not None and attempt.ended_at - attempt.at < SHORT_S
        for attempt in found
    )


def round_crash_loop(units: Iterable[Unit], since: float) -> str | None:
    """Why nothing new should be started: the newest attempts of a round, ended after `since`, all broke at once."""
    ended = [(attempt.ended_at, unit.id, attempt) for unit in units for attempt in unit.counted
             if attempt.ended_at is not None and attempt.ended_at > since]  # fmt: skip
    newest = sorted(ended, key=lambda entry: entry[0])[-LOOP_OF_ROUND:]
    if not is_crash_loop([attempt for _, _, attempt in newest], LOOP_OF_ROUND):
        return None
    names = ", ".join(name for _, name, _ in newest)
    return f"{LOOP_OF_ROUND} attempts in a row broke within {SHORT_S:.0f} s ({names})"
