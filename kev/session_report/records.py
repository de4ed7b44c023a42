"""What a report is made from, read from the disk; one file that cannot be believed hides no other."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kev import files
from kev.errors import KevError, NotFound
from kev.ledger.book import Ledger
from kev.ledger.units import Units
from kev.records.event import Event
from kev.records.readout import ReadOut, read_readout
from kev.records.spec import RoundSpec
from kev.records.verdict import Verdict, read_verdict
from kev.rounds.places import readout_path
from kev.rounds.registration import registration
from kev.rounds.specs import load_spec
from kev.session.journal import events_path, read_events
from kev.session.standing import Standing, standing_of


@dataclass(frozen=True, slots=True)
class RoundRecords:
    """What is on the disk of one round. Paths are relative to the checkout."""

    spec: RoundSpec
    path: str
    registered_at: datetime | None
    readout: ReadOut | None
    readout_path: str
    verdicts: tuple[tuple[str, Verdict], ...]
    """Path and verdict, by path."""


@dataclass(frozen=True, slots=True)
class Records:
    """What is on the disk of one session."""

    standing: Standing
    units: Units
    events: tuple[Event, ...]
    rounds: tuple[RoundRecords, ...]
    findings: tuple[str, ...]


def read_records(root: Path, state: Path, now: datetime) -> Records:
    """Everything that the session whose state file is `state` left in the checkout `root`.

    Raises NotFound or DamagedFile where its money cannot be told; anything else that is damaged becomes a finding.
    """
    units = Ledger(state.parent).read()
    standing = standing_of(state, units, now)
    findings: list[str] = []
    try:
        journal = read_events(events_path(state))
        events = journal.events
        findings += [f"{events_path(state).name}: line {line.number}: {line.damage}" for line in journal.damage]
    except NotFound:
        events = ()
    except KevError as error:
        events = ()
        findings.append(str(error))
    rounds = []
    for path in _spec_paths(standing, units):
        try:
            rounds.append(_read_round(root, path, findings))
        except KevError as error:
            findings.append(str(error))
    return Records(standing, units, events, tuple(sorted(rounds, key=lambda each: each.spec.round)), tuple(findings))


def _spec_paths(standing: Standing, units: Units) -> Iterable[str]:
    """The specs of the rounds that the session was opened for, or of which it launched anything."""
    session = standing.session
    launched = {unit.order.round for unit in units.by_id.values()
                if unit.order.session == session.name and unit.order.round is not None}  # fmt: skip
    found = [*session.rounds, *(f"experiments/rounds/r{number}.json" for number in sorted(launched))]
    return dict.fromkeys(found)


def _read_round(root: Path, path: str, findings: list[str]) -> RoundRecords:
    spec = load_spec(root / path, root).spec
    stored = readout_path(spec, root)
    readout = None
    try:
        readout = read_readout(stored).readout
    except NotFound:
        pass
    except KevError as error:
        findings.append(str(error))
    return RoundRecords(
        spec,
        path,
        _registered_at(root, path),
        readout,
        stored.relative_to(root).as_posix(),
        tuple(_verdicts(root, spec, findings)),
    )


def _registered_at(root: Path, path: str) -> datetime | None:
    try:
        return registration(root / path, root).at
    except KevError:
        return None


def _verdicts(root: Path, spec: RoundSpec, findings: list[str]) -> Iterable[tuple[str, Verdict]]:
    directory = root / "runs" / f"r{spec.round}-verdict"
    for name in files.list_names(directory):
        if name.endswith(".json") and not name.startswith("."):
            try:
                yield f"runs/{directory.name}/{name}", read_verdict(directory / name).verdict
            except KevError as error:
                findings.append(str(error))
