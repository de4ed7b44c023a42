"""What a line of a training log says. Everything else in a log is text for the log pane."""

import re
from dataclasses import dataclass
from math import isfinite

from kev.files import as_finite


@dataclass(frozen=True, slots=True)
class Step:
    """`ep<E> step <N>/<M> loss ..`: N steps are done of M over all epochs; both go on counting across attempts.

    `loss` is the mean since the line before, None where it is not a finite number; `lost` tells that from a line
    without one. The line's s/rec is an average over everything so far and understates wall time, so it is not read.
    """

    epoch: int
    step: int
    steps: int
    loss: float | None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """A continuation went on from `step`; what the attempt before had logged past it was lost."""

    step: int


@dataclass(frozen=True, slots=True)
class Saved:
    """Training ended and the checkpoint is on disk."""


@dataclass(frozen=True, slots=True)
class Scoring:
    done: int
    of: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot was completed, or a resume point reached the volume: work up to `step` survives a kill."""

    step: int


Line = Step | Resumed | Saved | Scoring | Kept

_STEP = re.compile(rb"ep(\d{1,4}) step (\d{1,12})/(\d{1,12})(?: loss (\S{1,40}))?")
_RESUMED = re.compile(rb"resumed from .{0,4000}?: step (\d{1,12})\b")
_SCORING = re.compile(rb"evaluated (\d{1,12})/(\d{1,12})\b")
_SNAPSHOT = re.compile(rb"snapshot step (\d{1,12}):")
_COMMITTED = re.compile(rb"\[volume\] committed resume point (\d{1,12})\b")


def parse(line: bytes) -> Line | None:
    """What `line` says, or None."""
    if match := _STEP.match(line):
        epoch, step, steps, loss = match.groups()
        value = _number(loss)
        return Step(int(epoch), int(step), int(steps), value, lost=value is None and _is_lost(loss))
    if line.startswith(b"saved "):
        return Saved()
    if match := _SCORING.match(line):
        return Scoring(int(match.group(1)), int(match.group(2)))
    if match := _RESUMED.match(line):
        return Resumed(int(match.group(1)))
    if match := _SNAPSHOT.match(line) or _COMMITTED.match(line):
        return Kept(int(match.group(1)))
    return None


def _number(text: bytes | None) -> float | None:
    try:
        return None if text is None else as_finite(float(text))
    except ValueError:
        return None


def _is_lost(text: bytes | None) -> bool:
    """Whether a program printed what is not a finite number: "nan", "-inf", "1e999"."""
    try:
        return text is not None and not isfinite(float(text))
    except ValueError:
        return False
