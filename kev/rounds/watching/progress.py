"""Whether a trial will be done before its timeout, told early: from the step lines of its log."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

STEP = re.compile(r"\bstep (\d{1,9})/(\d{1,9})\b")
LEAST_STEPS = 2


@dataclass(frozen=True, slots=True)
class Step:
    """A step line, and when its container wrote it (Unix seconds of its own clock)."""

    step: int
    total: int
    at: float


def steps_of(lines: Iterable[tuple[float, str]]) -> list[Step]:
    """The step lines among log lines, (when, text)."""
    return [Step(int(match[1]), int(match[2]), at) for at, text in lines if (match := STEP.search(text))]


def projected_s(steps: list[Step]) -> float | None:
    """Seconds from the first of these lines to the last step; None while too little is known.

    Both ends are by the clock of one container, so that no two clocks are compared.
    """
    if not steps:
        return None
    first, last = steps[0], steps[-1]
    if last.step - first.step < LEAST_STEPS or last.at <= first.at:
        return None
    return (last.total - first.step) * (last.at - first.at) / (last.step - first.step)


def warn_of_timeout(steps: list[Step], run_for_s: float, timeout_s: float, attempts_left: int) -> str | None:
    """A line for the journal if the trial will not be done in the attempt that has run for `run_for_s`."""
    rest = projected_s(steps[-20:])
    if rest is None:
        return None
    newest = steps[-1]
    span = newest.at - steps[-20:][0].at
    needed = run_for_s + rest - span
    if needed <= timeout_s:
        return None
    more = f"{attempts_left} more attempts are allowed" if attempts_left else "no further attempt is allowed"
    return (f"step {newest.step} of {newest.total}: needs about {needed / 3600:.1f} h, its timeout is "
            f"{timeout_s / 3600:.1f} h; {more}")  # fmt: skip
