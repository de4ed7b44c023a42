"""The public shape of what the ledger holds: spawn records, read records, and the session's list of its work.

They are written for others to read, and brought up by whoever writes next; nothing is decided by them.
"""

from decimal import Decimal
from pathlib import Path

from kev import files
from kev.budget import recorded
from kev.errors import NotFound
from kev.ledger.book import NotRecorded
from kev.ledger.units import Unit, Units
from kev.records.base import Record, read_record
from kev.records.read import ReadRecord
from kev.records.session import SessionRead, SessionState, SessionStudy
from kev.records.spawn import Attempt, SpawnRecord


def write_views(runs: Path, units: Units, names: set[str] | None = None) -> None:
    """Bring the records of the studies and reads in `names`, or of all, up to the ledger.

    Raises NotRecorded, or DamagedFile for a record that cannot be believed: it is left as it is.
    """
    groups: dict[str, list[Unit]] = {}
    for unit in units.by_id.values():
        if unit.attempts and (names is None or unit.order.name in names):
            groups.setdefault(unit.order.name, []).append(unit)
    for name, group in groups.items():
        if group[0].order.kind == "trial":
            place = runs / f"{name}.spawn.json"
            if any(unit.counted for unit in group):
                replace_record(place, spawn_record(name, group))
            else:
                remove_record(place, SpawnRecord)  # nothing was started: a reader would count its bound for ever
        elif group[0].order.kind in ("read", "locked"):
            replace_record(runs / f"{name.removeprefix('locked/')}.read.json", read_record_of(name, group[0]))


def spawn_record(name: str, trials: list[Unit]) -> SpawnRecord:
    """The spawn record of a study."""
    first = trials[0].order
    attempts = {unit.order.label or unit.id: [_attempt(unit, index) for index in range(len(unit.counted))]
                for unit in trials}  # fmt: skip
    values = {
        "name": name,
        "calls": {label: entries[-1].call if entries else None for label, entries in attempts.items()},
        "attempts": {label: [entry.to_json() for entry in entries] for label, entries in attempts.items()},
        "bound_usd": recorded(first.study_usd) if first.study_usd is not None else None,
        "gpu": first.gpu,
        "timeout": first.timeout,
        "full_ft": first.attempts > 1,
        "modal_retries": 0,
    }
    return SpawnRecord.model_validate(values)


def read_record_of(name: str, unit: Unit) -> ReadRecord:
    """The record of one read, with its call and how it stands."""
    order, attempt = unit.order, unit.current or unit.attempts[-1]
    payload = order.payload
    suites = [suite for key in ("suite", "decision", "transfer") if isinstance(suite := payload.get(key), str)]
    values = {
        "name": name,
        "kind": "locked" if order.kind == "locked" else "benchmark",
        "run": str(payload.get("run") or payload.get("trial") or ""),
        "suites": suites,
        "flags": str(payload.get("flags") or ""),
        "gpu": order.gpu or "",
        "timeout": order.timeout,
        "bound_usd": order.attempt_usd,
        "at": attempt.at,
        "call": attempt.call,
        "status": unit.outcome or ("refused" if attempt.withdrawn else "running" if attempt.live else attempt.outcome),
    }
    return ReadRecord.model_validate(values)


def with_work(state: SessionState, units: Units) -> SessionState:
    """`state` with everything the ledger holds of this session, as its studies and reads."""
    studies, reads = dict(state.studies), dict(state.reads)
    groups: dict[str, list[Unit]] = {}
    for unit in units.by_id.values():
        if unit.order.session == state.session and unit.order.kind != "sources":
            groups.setdefault(unit.order.name, []).append(unit)
    for name, group in groups.items():
        bound = sum((unit.order.attempt_usd * unit.order.attempts for unit in group), Decimal(0))
        if group[0].order.kind == "trial":
            calls = {unit.order.label or unit.id: unit.current.call if unit.current else None for unit in group}
            studies[name] = SessionStudy(bound_usd=bound, calls=calls, status=_status(group))
        else:
            reads[name] = SessionRead(bound_usd=bound, status=_status(group))
    return state.model_copy(update={"studies": studies, "reads": reads})


def _status(group: list[Unit]) -> str:
    if not all(unit.settled for unit in group):
        return "running"
    return next((unit.outcome for unit in group if unit.outcome not in (None, "done")), None) or "done"


def _attempt(unit: Unit, index: int) -> Attempt:
    attempt = unit.counted[index]
    values = {"nonce": attempt.nonce, "call": attempt.call, "at": attempt.at}
    return Attempt.model_validate(values | ({"abandoned": attempt.ended_at} if attempt.abandoned else {}))


def remove_record(path: Path, kind: type[Record]) -> None:
    """Take a record away, if it is there. Raises NotRecorded, or DamagedFile: what cannot be read stays as it is."""
    try:
        read_record(path, kind)
        files.remove(path)
    except NotFound:
        return
    except OSError as error:
        raise NotRecorded(f"{path}: cannot be removed ({error.strerror or error})") from None


def replace_record(path: Path, record: Record) -> None:
    """Write `record` unless it is there. Raises NotRecorded, or DamagedFile: what cannot be read stays as it is."""
    data = files.dump_json(record.to_json())
    try:
        if files.read_bytes(path) == data:
            return
        read_record(path, type(record))
    except NotFound:
        pass
    try:
        files.write_atomic(path, data)
    except OSError as error:
        raise NotRecorded(f"{path}: cannot be written ({error.strerror or error})") from None
