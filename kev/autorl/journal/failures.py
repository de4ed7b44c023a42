"""Why a round failed: named rules over the logs and the scores, each with the line that shows it.

Logs quote: a completion may hold a traceback, a bar may stand before a record. Only what a line begins with counts,
behind what terminals, launchers and loggers put there.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal, get_args

from kev.records.autorl import ScoreEntry
from kev.text import shorten, visible

FailureType = Literal[
    "code_error_runtime", "rollout_logic_wrong", "timeout_no_submission", "copy_model_fallback", "training_diverged",
    "unknown",
]  # fmt: skip
FAILURE_TYPES: tuple[str, ...] = get_args(FailureType)
MOST_TEXT = 16_384
"""Bytes of one piece of a log that are looked at: a bar without newlines can be as long as the disk."""
BLOCK = 1024 * 1024
_BAR = re.compile(
    r"^(?:[^{]*(?:(?:it|s|/s|\?)\]|\[\d+:\d\d[^{\[\]]{0,200}+\])\s*"
    r"|\s*(?:[\w ./-]{1,40}:\s*)?\d+(?:%\||/\d+ \[)[^{]*)(?=\{\s*['\"]|Traceback \()"
)
"""A progress bar, with or without figures of its own behind the rate."""
_OVERWRITTEN = re.compile(rb"(?<![^\r\n])[^\r\n{]*+\r(?=[^\r\n])")
"""What a carriage return took back at once, and in which no record was: nearly all of a log with bars."""
_RECORD = re.compile(r"\{\s*['\"](?:[^{}]++|\{[^{}]*+\})*+\}")
_INNER = re.compile(r"(?<=.)\{[^{}]*+\}")
_FIGURE = re.compile(
    r"['\"]([\w./-]+)['\"]\s*:\s*(?:[A-Za-z_][\w.]*\(\[?)?['\"]?"  # numpy and torch write what a figure is around it
    r"([+-]?(?:nan|inf(?:inity)?|[\d.]+(?:e[+-]?\d+)?))\b",
    re.I,
)
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|^\ufeff")
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_PREFIX = re.compile(
    r"(?:\[?(?:rank|default)\d+\]?:|\d+:(?= )|\(\w[^()]*\bpid=\d+[^()]*\)"  # torch, srun, ray
    rf"|{_LEVEL}:[\w.]+:|\[?{_LEVEL}(?:\|[^\]]*)?\]?(?= )|\[[\w.]+(?::\w+)?\](?= )"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?)"
    r" ?(?:(?:-|\||>>) )?"
)
_GROUP = re.compile(r"^ +[|+] (?=Exception Group Traceback|Traceback| |[\w.]+:)")
_ERROR = re.compile(r"^(?:[\w<>]+\.)*(?:[A-Z]\w*|error)(?:\([\w.]+\))?(?::|$)")
_LAUNCHERS = re.compile(r"^(?:\w+\.)*(?:ChildFailedError|CalledProcessError)\b")
"""What a launcher says of a process that failed, which has said why itself."""
_TRACEBACK = ("Traceback (most recent call last):", "Exception Group Traceback (most recent call last):")
_TIME_UP = re.compile(r"time (?:limit|is up|budget)|timed? ?out|timeout", re.I)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of a file, or of what a file adds up to."""

    file: str
    line: int | None
    text: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {shorten(visible(self.text), 200)}"


@dataclass(frozen=True, slots=True)
class Failure:
    """The type, the rule that said so, and what shows it."""

    type: FailureType
    rule: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Signs:
    """What a log holds that the rules look at, gathered in one pass and bounded whatever its size."""

    records: int = 0
    traceback: Evidence | None = None
    """The error line of the last traceback."""
    ended_by_traceback: bool = False
    """Whether no record of the training came after it."""
    not_finite: Evidence | None = None
    """The first of the records that are not finite up to the last."""
    equal_rewards: Evidence | None = None
    """The first record, where no record has groups that differ."""


def log_lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Pieces of a log between newlines and carriage returns, with the number of their line, from 1; without those that
    were overwritten and hold no record.

    Of a piece longer than MOST_TEXT only the end is kept, so memory is bounded.
    """
    number, rest = 1, b""
    while block := stream.read(BLOCK):
        *whole, rest = re.split(rb"(\n|\r)", _OVERWRITTEN.sub(b"", rest + block))
        for piece, end in zip(whole[::2], whole[1::2], strict=True):
            if piece:
                yield number, piece[-MOST_TEXT:].decode(errors="backslashreplace")
            number += end == b"\n"
        rest = rest[-MOST_TEXT:]
    if rest:
        yield number, rest.decode(errors="backslashreplace")


def records_in(text: str) -> list[dict[str, float]]:
    """The figures of the records that a line begins with, or has right behind a bar or another record."""
    text = _BAR.sub("", text).lstrip()
    found = []
    while (match := _RECORD.match(text)) is not None:
        own = _INNER.sub("", match.group())
        figures = {name: float(value) for name, value in _FIGURE.findall(own) if value.count(".") < 2}
        if figures:
            found.append(figures)
        text = _BAR.sub("", text[match.end() :].lstrip()).lstrip()
    return found


def read_signs(lines: Iterable[tuple[int, str]], name: str) -> Signs:
    """The signs in a log called `name`."""
    records, groups = 0, 0
    sick: Evidence | None = None
    equal: Evidence | None = None
    differ = False
    error: Evidence | None = None
    open_trace, framed, last = False, False, False
    for number, line in lines:
        text = _own(line)
        if text.startswith(_TRACEBACK):
            open_trace, framed = True, False
        elif text.startswith('  File "'):  # of a syntax error it is all that is said
            open_trace = framed = True
        elif open_trace and framed and _ERROR.match(text):
            if not (last and _LAUNCHERS.match(text)):
                error = Evidence(name, number, text)
            open_trace, last = False, True
        elif open_trace and text and not text.startswith(" "):
            open_trace = False
        for record in records_in(text):
            records += 1
            last = False
            state = _is_finite(record)
            if state is False and sick is None:
                sick = Evidence(name, number, text)
            elif state:
                sick = None
            varied = _groups_differ(record)
            if varied is not None:
                groups += 1
                differ = differ or varied
                equal = equal or Evidence(name, number, text)
    few = groups < 3
    return Signs(records, error, last, sick, None if differ or few else equal)


def classify(
    signs: Signs,
    *,
    exit_code: int | None,
    submissions: Sequence[ScoreEntry],
    run_log: Sequence[tuple[int, str]] = (),
    last: Evidence | None = None,
) -> Failure | None:
    """The failure of a round, by the first rule that holds; None where nothing shows one.

    `last` is what was last heard of it, which has to do as evidence where no rule says why it ended badly.

    traceback       it ended in one, and no training went on after it, nor did the process end well
    not_finite      loss or gradient norm is no number up to the last record
    equal_rewards   in every record all groups have equal rewards, and no gradient is left but that of the KL term
    base_copied     whatever was submitted has the weights of the base
    nothing_sent    the time was up, and nothing had been submitted
    grading_failed  everything that was submitted failed to be graded
    not_scored      nothing that was submitted has a score that is a finite number
    exit_code       the process ended badly, and no rule above says why
    """
    if signs.traceback and signs.ended_by_traceback and exit_code != 0:
        return Failure("code_error_runtime", "traceback", signs.traceback)
    if signs.not_finite:
        return Failure("training_diverged", "not_finite", signs.not_finite)
    if signs.equal_rewards:
        return Failure("rollout_logic_wrong", "equal_rewards", signs.equal_rewards)
    if submissions and all(each.label == "no change" for each in submissions):
        first = submissions[0]
        said = f"submission {first.submission_id} has the weights of the base (improvement {first.improvement})"
        return Failure("copy_model_fallback", "base_copied", Evidence("scores.json", None, said))
    late = next(((number, text) for number, text in run_log if _TIME_UP.search(text)), None)
    if late is not None and not submissions:
        return Failure("timeout_no_submission", "nothing_sent", Evidence("run.log", *late))
    if submissions and all(each.error is not None for each in submissions):
        said = f"submission {submissions[-1].submission_id}: {submissions[-1].error}"
        return Failure("code_error_runtime", "grading_failed", Evidence("scores.json", None, said))
    if submissions and not any(each.is_valid for each in submissions):
        said = f"submission {submissions[-1].submission_id} has no score that is a finite number"
        return Failure("unknown", "not_scored", Evidence("scores.json", None, said))
    if exit_code:
        return Failure("unknown", "exit_code", last or Evidence("process", None, f"exit code {exit_code}"))
    return None


def _own(line: str) -> str:
    """`line` as the process wrote it: without colours, and without what a launcher, a logger or a bar put before it."""
    text = _ESCAPE.sub("", line)
    while (prefix := _PREFIX.match(text)) is not None:
        text = text[prefix.end() :]
    if "Traceback (" in text:
        text = _BAR.sub("", text)
    return _GROUP.sub("", text)


def _is_finite(record: dict[str, float]) -> bool | None:
    """Whether loss and gradient are numbers; None where the record says neither."""
    figures = [record[name] for name in ("loss", "grad_norm") if name in record]
    broken = record.get("frac_non_finite_loss", 0.0)
    if not math.isfinite(record.get("train_loss", 0.0)):
        return False  # the mean of a whole run; a finite one says nothing, since what was no number is left out of it
    if not figures and not broken:
        return None
    return all(map(math.isfinite, figures)) and broken == 0


def _groups_differ(record: dict[str, float]) -> bool | None:
    """Whether some group of answers has rewards that differ; None where the record says nothing about groups."""
    share, spread = record.get("frac_reward_zero_std"), record.get("reward_std")
    if share is None and spread is None:
        return None
    equal = share >= 1 if share is not None else spread == 0
    # The distance from the reference model has a gradient of its own, and teaches nothing.
    return not equal or bool(record.get("grad_norm", 0.0) and not record.get("kl", 0.0))
