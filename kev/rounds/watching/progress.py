"""Whether a trial will be done before its timeout, told early: from the step lines of its log."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

STEP = re.compile(r"\bstep (\d{1,9})/(\d{1,9})\b")
LEAST_STEPS = 2
RECENT = 20
"""Step lines that tell how fast a trial is now."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step line, and when its container wrote it (Unix seconds of its own clock)."""

    step: int
    total: int
    at: float


def steps_of(lines: Iterable[tuple[float, str]]) -> list[Step]:
    """The step lines among log lines, (when, text)."""
    return [Step(int(match[1]), int(match[2]), at) for at, text in lines if (match := STEP.search(text))]


def in_one_go(steps: list[Step]) -> list[Step]:
    """The last of these lines that were written without a restart, after which steps are done a second time."""
    again = [index for index in range(1, len(steps)) if steps[index].step < steps[index - 1].step]
    return steps[again[-1] :] if again else steps


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
    recent = in_one_go(steps)[-RECENT:]
    rest = projected_s(recent)
    if rest is None:
        return None
    newest = recent[-1]
    span = newest.at - recent[0].at
    needed = run_for_s + rest - span
    if needed <= timeout_s:
        return None
    more = f"{attempts_left} more attempts are allowed" if attempts_left else "no further attempt is allowed"
    return (f"step {newest.step} of {newest.total}: needs about {needed / 3600:.1f} h, its timeout is "
            f"{timeout_s / 3600:.1f} h; {more}")  # fmt: skip
