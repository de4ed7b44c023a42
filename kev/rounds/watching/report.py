"""What a watcher writes for others after each pass: watch.json of every study, its own sign of life, the session."""

import os
import socket

from kev import files
from kev.ledger.units import Unit
from kev.ledger.views import replace_record, with_work, write_views
from kev.records.watch import TrialState, WatchRecord
from kev.records.watcher import WatcherRecord
from kev.rounds.watching.passes import Watch
from kev.session import change_locked_state, session_name

STATUS = {"timed_out": "timeout", "refused": "refused", "done": "done", "cancelled": "cancelled"}


def watch_record(units: list[Unit], watch: Watch) -> WatchRecord:
    """watch.json of one study: the public shape of what the ledger and this watcher know."""
    return WatchRecord(calls={unit.order.label or unit.id: _state(unit, watch) for unit in units if unit.counted})


def write_pass(watch: Watch) -> None:
    """Bring every view up to the ledger. Raises OSError, or DamagedFile for a view that must not be written over."""
    engine = watch.engine
    units = watch.units()
    if engine.ledger.size != watch.shown:
        write_views(engine.runs, engine.ledger.read(), {unit.order.name for unit in units})
    studies: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.order.kind == "trial":
            studies.setdefault(unit.order.name, []).append(unit)
    for name, trials in studies.items():
        replace_record(engine.runs / f"{name}.watch.json", watch_record(trials, watch))


def write_sign_of_life(watch: Watch, passes: int, state: str, text: str = "") -> None:
    """Say that the watcher is alive, and how it stands. Raises as `write_pass` does."""
    engine = watch.engine
    silences = watch.silent.values()
    unreachable = [silence.since for silence in silences if not silence.throttled]
    throttled = [silence.since for silence in silences if silence.throttled]
    record = WatcherRecord(
        round=watch.loaded.spec.round, process=os.getpid(), host=socket.gethostname(), at=engine.now(), passes=passes,
        state=state, text=text, unreachable_since=min(unreachable, default=None),
        throttled_since=min(throttled, default=None),
    )  # fmt: skip
    replace_record(engine.runs / f"{session_name(engine.gate.state)}-watcher.json", record)


async def mirror_session(watch: Watch) -> None:
    """Bring the session's list of studies and reads up to the ledger, if that has grown. Raises LockHeld."""
    engine = watch.engine
    if engine.ledger.size != watch.shown:
        async with engine.gate.locked():
            units = engine.ledger.read()
            change_locked_state(engine.gate.state, lambda old: with_work(old, units))
        watch.shown = engine.ledger.size


def is_quiet(watch: Watch) -> bool:
    """Whether this watcher may be killed without anyone having to find out afterwards what it had begun."""
    return not any(unit.live is not None and unit.live.pending for unit in watch.units())


def _state(unit: Unit, watch: Watch) -> TrialState:
    current = unit.current
    silence = watch.silent.get(unit.id)
    has_result = "result.json" in files.list_names(watch.engine.root / unit.order.local)
    status = "running"
    if unit.settled and has_result:
        status = "done"  # also of a trial that failed, and was scored once more
    elif unit.settled:
        status = STATUS.get(unit.outcome or "", "failed")
    elif current is not None and not current.live:
        status = STATUS.get(current.outcome or "", "running")
    values = {
        "status": status,
        "launched": unit.settled and has_result,
        "transient": silence.times if silence is not None else 0,
        "call": current.call if current is not None else None,
        "error": (unit.text or watch.waits.get(unit.id) or (silence.text if silence else None) or None),
    }
    error = values["error"]
    return TrialState.model_validate(values | {"error": str(error)[:300] if error else None})
