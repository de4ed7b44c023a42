"""The columns of the studies: which there are, and which stay where there is no room for all."""

from collections.abc import Iterable
from typing import Final

ABOUT: Final = {
    "trial": "study and trial; always there",
    "state": "sign and word of its state",
    "step": "optimizer steps done, of how many",
    "progress": "steps done, as a bar",
    "rate": "steps per minute",
    "trend": "how the rate went, as a line of bars",
    "finish": "projected finish and timeout, or what there is to say",
    "log": "time since the last line of its log",
    "lease": "time since its lease last moved",
    "tries": "attempts, of how many",
    "loss": "last logged loss",
    "bound": "the most that the study can cost",
}
"""Id and meaning, in the order in which they stand if nothing else is asked for."""

LONGEST_FIRST: Final = (
    "trial", "state", "step", "rate", "finish", "lease", "log", "tries", "bound", "progress", "loss", "trend",
)  # fmt: skip
"""Which column stays longest as the screen becomes narrow: the last of these goes first."""

EVERY: Final = tuple(ABOUT)


def wrong_with(ids: object) -> str:
    """What is wrong with `ids` as a choice of columns, or ""."""
    there = f"there are {', '.join(EVERY)}"
    if not isinstance(ids, list | tuple) or not all(isinstance(each, str) for each in ids):
        return f"should be a list of columns; {there}"
    for place, each in enumerate(ids):
        if each not in ABOUT:
            return f"{each!r} is no column; {there}"
        if each in ids[:place]:
            return f"{each!r} is there twice"
    return ""


def chosen(ids: Iterable[str]) -> tuple[str, ...]:
    """A choice that can be shown: its trials have names, whatever was left out."""
    ids = tuple(ids)
    return ids if "trial" in ids else ("trial", *ids)
