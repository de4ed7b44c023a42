"""What the panels of a bench have in common: what they paint, and how a label is coloured."""

from typing import Final

from kevtui.bench.snapshot import BenchSnapshot, RunState
from kevtui.widgets.line import Role
from kevtui.widgets.panel import Panel

STATE_ROLE: Final = {
    RunState.RUNNING: Role.GOOD,
    RunState.TIME_UP: Role.WARN,
    RunState.ENDED: Role.DIM,
    RunState.UNKNOWN: Role.DIM,
}

_STANDING_ROLE: Final = {
    "gain": Role.GOOD, "above": Role.GOOD, "tie": Role.DIM, "no change": Role.DIM, "loss": Role.WARN,
    "below": Role.WARN, "error": Role.BAD, "foreign": Role.BAD, "not finite": Role.BAD,
}  # fmt: skip


class BenchPanel(Panel[BenchSnapshot]):
    """A panel over a BenchSnapshot."""


def standing_role(word: str) -> Role:
    """How a submission's label, or the verdict on a run, is written. The word itself always stands there."""
    return _STANDING_ROLE.get(word, Role.TEXT)


def gain_role(value: float | None) -> Role:
    if value is None:
        return Role.DIM
    return Role.GOOD if value > 0 else Role.WARN if value < 0 else Role.TEXT
