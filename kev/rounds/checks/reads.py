"""Reads, and the directories their rows go to."""

import re
import shlex
from collections import defaultdict
from pathlib import PurePosixPath

from kev.budget import MAX_TIMEOUT_FULL_WEIGHT
from kev.document import JsonPath
from kev.errors import UsageError
from kev.records.spec import Directories, Read, size_of
from kev.records.suite import SPLITS
from kev.rounds.locked_args import parse_locked_arguments
from kev.rounds.problems import Severity
from kev.rounds.sides import TRANSFER
from kev.rounds.subject import Subject
from kev.rounds.templates import FIELDS, expand, unknown_fields
from kev.spelling import nearest
from kev.suite import REMOVED_SUITES, find_removed

ENTRYPOINTS = ("benchmarks", "locked_test")
SWITCHES = {"--allow-test": 0, "--split": 1, "--date_facts": 0, "--rotations": 1}
"""Switches of the benchmark that a read may add, with the number of their values."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ROUND = re.compile(r"(?<![A-Za-z0-9])r([0-9]{1,9})[a-z]?(?![A-Za-z0-9])")


def check_reads(subject: Subject) -> None:
    """Every read's entrypoint, suite and flags; the tables by size; the directories of arms, parents and stages."""
    for tag, read in subject.spec.reads.items():
        where: JsonPath = ("reads", tag)
        if tag == TRANSFER:
            subject.problems.add("bad-name", where, "`transfer` stands for the read inside the trial; choose another")
        elif not _NAME.fullmatch(tag):
            subject.problems.add("bad-name", where, "a tag becomes part of a directory: letters, digits, . _ -")
        _check_read(subject, read, where)
    if subject.spec.transfer_read is not None:
        subject.check_tag(subject.spec.transfer_read, ("transfer_read",))
    _check_sizes(subject)
    _check_directories(subject)


def read_suite_path(read: Read) -> str | None:
    """The suite whose rows a read yields; a locked test's rows are of the round's transfer suite, not named here."""
    return read.suite if read.entrypoint == "benchmarks" else None


def read_split(read: Read) -> str:
    """The split that a read scores."""
    flags = _split_flags(read.flags)
    if read.entrypoint == "locked_test" or "--allow-test" in flags:
        return "test"
    for index, flag in enumerate(flags):
        if flag.startswith("--split="):
            return flag.removeprefix("--split=")
        if flag == "--split" and index + 1 < len(flags):
            return flags[index + 1]
    return "development"


def _split_flags(flags: str | None) -> list[str]:
    try:
        return shlex.split(flags or "")
    except ValueError:
        return (flags or "").split()


def _check_read(subject: Subject, read: Read, where: JsonPath) -> None:
    problems = subject.problems
    if read.entrypoint not in ENTRYPOINTS:
        known = nearest(read.entrypoint, ENTRYPOINTS)
        problems.add("unknown-entrypoint", (*where, "entrypoint"), f"there is no entrypoint {read.entrypoint!r}{known}")
        return
    key = "suite" if read.entrypoint == "benchmarks" else "decision"
    path = read.suite if key == "suite" else read.decision
    if path is None:
        problems.add("missing-key", (*where, key), f"is missing; a read by {read.entrypoint} needs it")
        return
    check_suite_path(subject, path, (*where, key), "the suite of this read")
    if read.entrypoint == "locked_test":
        if read.flags:
            problems.add("bad-flag", (*where, "flags"), "a locked test takes no switches here; see locked_args")
        return
    if "@" in path or "," in path:
        problems.add(
            "bad-path", (*where, "suite"), "a benchmark job cannot carry a suite with @ or a comma in its name"
        )
    _check_flags(subject, read, (*where, "flags"))


def _check_flags(subject: Subject, read: Read, where: JsonPath) -> None:
    flags = _split_flags(read.flags)
    while flags:
        name, _, value = flags.pop(0).partition("=")
        if name not in SWITCHES:
            message = f"the benchmark has no switch {name!r}{nearest(name, SWITCHES)}"
            subject.problems.add("bad-flag", where, message)
            return
        if SWITCHES[name] and not value:
            value = flags.pop(0) if flags else ""
        if name == "--split" and value not in SPLITS[:3]:
            hint = "; the test split is read with --allow-test" if value == "test" else nearest(value, SPLITS[:3])
            subject.problems.add("bad-flag", where, f"there is no split {value!r} to read{hint}")
    suite = subject.checkout.suite(read.suite or "")
    split = read_split(read)
    if suite is not None and suite.manifest.files and f"{split}.jsonl" not in suite.manifest.files:
        there = ", ".join(sorted(suite.manifest.files))
        subject.problems.add("missing-split", where, f"{read.suite} has no {split} partition; it has {there}")


def check_suite_path(subject: Subject, path: str, where: JsonPath, need: str) -> None:
    """A suite's directory, or a file of records: there, readable, and not removed."""
    removed = find_removed(path)
    if removed is not None:
        entry = REMOVED_SUITES[removed]
        past = subject.problems.recorded and subject.spec.round <= entry["last_round"]
        severity = Severity.ARCHIVED if past else Severity.PROBLEM
        message = f"{removed} was removed on {entry['removed']}: {entry['reason']}"
        subject.problems.add("removed-suite", where, message, severity)
    elif not is_inside(path, "evals"):
        subject.problems.add("bad-path", where, f"{path!r} is not under evals/")
    elif path.endswith(".jsonl"):
        if not subject.checkout.has(path):
            subject.problems.missing(path, where, need)
    else:
        subject.check_suite(path, where, need)


def is_inside(path: str, directory: str) -> bool:
    """Whether a relative path stays inside `directory`."""
    parts = PurePosixPath(path).parts
    return len(parts) > 1 and parts[0] == directory and ".." not in parts and path.isprintable()


def _check_sizes(subject: Subject) -> None:
    sizes = sorted({size_of(arm) for arm in subject.names("arms")})
    for key, table in (("read_timeout", subject.spec.read_timeout), ("locked_args", subject.spec.locked_args)):
        for size in table or {}:
            if size not in sizes:
                subject.problems.add("unknown-size", (key, size), f"no arm is of size {size!r}{nearest(size, sizes)}")
    for size, words in (subject.spec.locked_args or {}).items():
        try:
            parse_locked_arguments(words)
        except UsageError as error:
            subject.problems.add("bad-flag", ("locked_args", size), str(error))
    times: dict[JsonPath, int] = {("read_timeout", size): s for size, s in (subject.spec.read_timeout or {}).items()}
    times |= {("confirm", name, "read_timeout"): stage.read_timeout
              for name, stage in subject.spec.confirm.items() if stage.read_timeout is not None}  # fmt: skip
    for where, seconds in times.items():
        if not 1 <= seconds <= MAX_TIMEOUT_FULL_WEIGHT:
            message = f"{seconds} s; a read may have 1 to {MAX_TIMEOUT_FULL_WEIGHT} s"
            subject.problems.add("out-of-range", where, message)


def _check_directories(subject: Subject) -> None:
    spec = subject.spec
    _check_table(subject, spec.arm_reads, ("arm_reads",), own=True)
    for name, arm in spec.arms.items():
        if arm.reads is not None:
            _check_table(subject, arm.reads, ("arms", name, "reads"), own=True)
    for name, parent in spec.parents.items():
        # A parent is read in earlier rounds; that its directories name them is how it should be.
        _check_table(subject, parent.reads, ("parents", name, "reads"), own=False)
    for name, stage in spec.confirm.items():
        _check_table(subject, stage.candidate_reads, ("confirm", name, "candidate_reads"), own=True)
        if stage.parent_reads is not None:
            _check_table(subject, stage.parent_reads, ("confirm", name, "parent_reads"), own=True)


def _check_table(subject: Subject, reads: Directories, where: JsonPath, *, own: bool) -> None:
    others: dict[str, list[JsonPath]] = defaultdict(list)
    table = {(*where, tag): path for tag, path in reads.items()} if isinstance(reads, dict) else {where: reads}
    for place, template in table.items():
        if isinstance(reads, dict):
            subject.check_tag(str(place[-1]), place, transfer=True)
        elif "{tag}" not in template and len(subject.names("reads")) > 1:
            subject.problems.add("bad-template", place, "without {tag} all reads would go to one directory")
        for name in unknown_fields(template):
            what = f"{{{name}}}{nearest(name, FIELDS)}" if name else "a brace without its partner"
            subject.problems.add("bad-template", place, f"{template!r} has {what}")
        sample = expand(template, round_number=subject.spec.round, arm="a", size="s", tag="t")
        if not is_inside(sample, "runs"):
            subject.problems.add("bad-path", place, f"{template!r} is not under runs/")
        for number in _ROUND.findall(sample):
            if own and subject.spec.round and int(number) != subject.spec.round:
                others[number].append(place)
    for number, places in others.items():
        count = f"{len(places)} directories name" if len(places) > 1 else f"{table[places[0]]!r} names"
        subject.problems.warn(
            "other-round", places[0] if len(places) == 1 else where, f"{count} round {number}, and this is round "
            f"{subject.spec.round}",
        )  # fmt: skip
