"""One thing that was looked at, what was found, and what would put it right."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """`INFO` is worth knowing and needs nothing; `RISK` costs comfort or may mislead; `BAD` stops something."""

    GOOD = "good"
    INFO = "info"
    RISK = "risk"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    area: str
    name: str
    outcome: Outcome
    found: str
    fix: str = ""
    """One line that can be acted on; empty where nothing needs to be done."""
