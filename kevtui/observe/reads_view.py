"""The reads matrix: which side has been read under which tag, by what lies on the disk."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from kev.records.intent import ReadIntent
from kev.records.read import ReadRecord
from kev.records.spec import RoundSpec, size_of
from kev.rounds.sides import TRANSFER, Side, candidate_side, parent_side
from kevtui.observe.derive import coarse
from kevtui.observe.snapshot import ReadCell, Reads, ReadState

DEFAULT_TIMEOUT_S = 1800.0
TIMEOUTS_S = (("longstate", 7200.0), ("documents", 5400.0), ("transfer-v9", 3600.0), ("longdoc", 10800.0))
"""Of one read by the name of its suite; the first that matches counts."""

QUEUE_S = 900.0
"""What a job may wait for its container before it counts as overdue."""

_FAILED = re.compile(rb"^(?P<name>[A-Za-z0-9][\w.-]{0,199}): FAILED (?P<reason>.{1,300})")
_SCORED = re.compile(rb"^evaluated (\d{1,12})/(\d{1,12})\b")


@dataclass(frozen=True, slots=True)
class ReadLog:
    """What the log of one launched command says: reads that failed, and how far the last one is."""

    failed: Mapping[str, str]
    """Name of the read's directory to the reason."""
    progress: tuple[int, int] | None = None


def read_log(lines: Iterable[bytes]) -> ReadLog:
    failed, progress = {}, None
    for line in lines:
        if match := _FAILED.match(line):
            failed[match["name"].decode()] = match["reason"].decode(errors="replace")
        elif match := _SCORED.match(line):
            progress = (int(match.group(1)), int(match.group(2)))
    return ReadLog(failed, progress)


@dataclass(frozen=True, slots=True)
class Launch:
    """One intent on disk: the reads it launched, by directory, and what its logs say."""

    owner: str
    intent: ReadIntent
    logs: tuple[ReadLog, ...] = ()

    def timeout_s(self, directory: str) -> float | None:
        """The timeout of the command that reads `directory`; None where no command does."""
        name = directory.removeprefix("runs/")
        for command in self.intent.commands:
            if any(name in _names(argument) for argument in command):
                return _timeout(command)
        return None


def view_reads(
    spec: RoundSpec,
    *,
    has_rows: Callable[[str], bool],
    launches: Iterable[Launch],
    record_of: Callable[[str], ReadRecord | None] = lambda _: None,
    candidates: Collection[str] = (),
    now_unix: float,
) -> Reads:
    """Arms, then parents, by every tag that the rule reads, then by `<stage>/<tag>` of the confirmation stages.

    `has_rows` and `record_of` take a directory such as `runs/r41-a-hard`; `candidates` are the arms that the read-out
    chose.
    """
    launches = list(launches)
    owners = [*spec.arms, *spec.parents]
    cells: list[ReadCell] = []
    tags: dict[str, None] = {}
    for owner, side, wanted in _sides(spec):
        for tag in wanted:
            directory = side.directory(tag)
            if directory is None:
                continue
            tags.setdefault(tag)
            cells.append(
                _cell(spec, owner, tag, directory, has_rows(directory), launches, record_of(directory), now_unix)
            )
    order = [tag for tag in spec.reads if tag in tags] + [tag for tag in tags if tag not in spec.reads]
    known = {cell.directory for cell in cells}
    for owner, column, tag, directory in _confirming(spec, candidates):
        if directory in known:
            continue
        known.add(directory)
        cell = _cell(spec, owner, tag, directory, has_rows(directory), launches, record_of(directory), now_unix)
        # Only the candidate of a size is confirmed; of another arm there is something to see only where it was read.
        if owner in candidates or owner in spec.parents or cell.state is not ReadState.ABSENT:
            cells.append(replace(cell, tag=column))
            order += [] if column in order else [column]
    return Reads(owners=tuple(owners), tags=tuple(order), cells=tuple(cells))


def rule_tags(spec: RoundSpec) -> list[str]:
    """Every tag that a rule-stage comparison reads, in the order in which the panels name them."""
    tags: dict[str, None] = {}
    for panel in spec.rule.panels.values():
        tags.update(dict.fromkeys(panel.reads))
    if spec.rule.unknowable:
        tags.setdefault(spec.rule.unknowable)
    return list(tags)


def _sides(spec: RoundSpec) -> Iterator[tuple[str, Side, list[str]]]:
    tags = rule_tags(spec)
    pool = [*spec.temperature.reads, *(spec.temperature.exclude_reads or [])] if spec.temperature else []
    both = list(dict.fromkeys([*tags, *pool]))
    seen = set()
    for name, arm in spec.arms.items():
        yield name, candidate_side(spec, name), both
        if arm.parent in spec.parents and arm.parent not in seen:
            seen.add(arm.parent)
            yield arm.parent, parent_side(spec, name), both if spec.parents[arm.parent].pooled else tags


def _confirming(spec: RoundSpec, candidates: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    """(owner, column, tag, directory) of every read of every confirmation stage, stage by stage."""
    for stage_name, stage in spec.confirm.items():
        tags: dict[str, None] = {}
        for panel in stage.panels.values():
            tags.update(dict.fromkeys(panel.reads))
        if stage.unknowable:
            tags.setdefault(stage.unknowable)
        for name, arm in spec.arms.items():
            sides = [(name, candidate_side(spec, name, stage))]
            if name in candidates and arm.parent in spec.parents:
                sides.append((arm.parent, parent_side(spec, name, stage)))
            for owner, side in sides:
                for tag in tags:
                    directory = side.directory(tag)
                    if directory is not None:
                        yield owner, f"{stage_name}/{tag}", tag, directory


def _cell(
    spec: RoundSpec, owner: str, tag: str, directory: str, landed: bool, launches: list[Launch],
    record: ReadRecord | None, now_unix: float,
) -> ReadCell:  # fmt: skip
    if landed:
        return ReadCell(owner, tag, ReadState.LANDED, directory)
    if record is not None:
        return _recorded(owner, tag, directory, record, now_unix)
    name = PurePosixPath(directory).name
    for launch in sorted(launches, key=lambda launch: -float(launch.intent.launched_at)):
        timeout_s = launch.timeout_s(directory)
        if timeout_s is None:
            continue
        age_s = max(0.0, now_unix - float(launch.intent.launched_at))
        for log in launch.logs:
            if name in log.failed:
                return ReadCell(owner, tag, ReadState.FAILED, directory, coarse(age_s), detail=log.failed[name])
        limit_s = (timeout_s or registered_timeout_s(spec, owner, tag)) + QUEUE_S
        state = ReadState.OVERDUE if age_s > limit_s else ReadState.IN_FLIGHT
        progress = next((log.progress for log in launch.logs if log.progress), None)
        alone = len(launch.intent.commands) == 1 and _jobs(launch.intent.commands[0]) == 1
        return ReadCell(owner, tag, state, directory, coarse(age_s), progress if alone else None)
    return ReadCell(owner, tag, ReadState.ABSENT, directory)


def _recorded(owner: str, tag: str, directory: str, record: ReadRecord, now_unix: float) -> ReadCell:
    """A read that has a record of its own, and no rows yet."""
    age_s = max(0.0, now_unix - float(record.at))
    status = record.to_json().get("status")
    if status in ("failed", "cancelled", "blocked"):
        return ReadCell(owner, tag, ReadState.FAILED, directory, coarse(age_s), detail=str(status))
    state = ReadState.OVERDUE if age_s > float(record.timeout) + QUEUE_S else ReadState.IN_FLIGHT
    return ReadCell(owner, tag, state, directory, coarse(age_s))


def timeout_of_cell(spec: RoundSpec, cell: ReadCell, launch: Launch | None) -> float:
    """Seconds that the read may run: its command's own timeout, else the registered one."""
    own_s = launch.timeout_s(cell.directory) if launch else None
    stage, _, tag = cell.tag.rpartition("/")
    at_stage_s = spec.confirm[stage].read_timeout if stage in spec.confirm else None
    return own_s or at_stage_s or registered_timeout_s(spec, cell.owner, tag)


def registered_timeout_s(spec: RoundSpec, owner: str, tag: str) -> float:
    """What the spec gives every read of the owner's size, else what the suite is given."""
    by_size = (spec.read_timeout or {}).get(size_of(owner))
    if by_size is not None:
        return float(by_size)
    read = spec.reads.get(tag)
    suite = (read.suite or read.decision or "") if read else "transfer" if tag == TRANSFER else ""
    return next((seconds for part, seconds in TIMEOUTS_S if part in suite), DEFAULT_TIMEOUT_S)


def _names(argument: str) -> set[str]:
    """The output names in an argument: of a job list `run@suite@name[@flags],..`, or the argument itself."""
    names = {argument}
    for job in argument.split(","):
        fields = job.split("@")
        if len(fields) >= 3:
            names.add(fields[-2] if fields[-1].startswith("--") else fields[-1])
    return names


def _jobs(command: list[str]) -> int:
    return max((argument.count(",") + 1 for argument in command if argument.count("@") >= 2), default=1)


def _timeout(command: list[str]) -> float:
    """The command's own `--timeout` in seconds, or 0 where it has none."""
    for flag, value in zip(command, [*command[1:], ""], strict=True):
        flag, _, joined = flag.partition("=")
        text = joined or value
        if flag == "--timeout" and text.isdecimal() and len(text) < 9:
            return float(text)
    return 0.0
