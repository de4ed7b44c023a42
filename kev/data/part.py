"""Which family of sentences and words a partition is made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any, Protocol

from kev.data.draw import Draw
from kev.data.record import DataRecord


class Pack(StrEnum):
    """A family of templates and vocabulary; no two packs share a sentence or a name."""

    TRAIN = "train"
    DEVELOPMENT = "development"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Part:
    """A partition by name, and the pack that its text is drawn from."""

    name: str
    pack: Pack

    @classmethod
    def named(cls, name: str) -> "Part":
        """The partition `name`; calibration reads like development, so that a temperature is fitted on unseen text."""
        return cls(name, Pack.DEVELOPMENT if name == "calibration" else Pack(name))

    def ids(self, source: str) -> Iterator[str]:
        """Endless record ids of this partition."""
        return (f"{source}/{self.name}/{number:04d}" for number in count())


class Generator(Protocol):
    """Yields groups of records without end: a single record, a pair, or a record and its twin."""

    def __call__(self, draw: Draw, part: Part) -> Iterator[list[DataRecord]]: ...


def noul(instructions: str, label: bool, src: str) -> dict[str, dict[str, Any]]:
    """The questions of a record that asks one yes-or-no question."""
    return {"answer": {"type": "noul", "instructions": instructions, "label": label, "src": src}}


def choice(instructions: str, options: dict[str, str | None], label: str, src: str) -> dict[str, dict[str, Any]]:
    """The questions of a record that asks for one of `options`, name to description."""
    question = {"type": "choice", "instructions": instructions, "criteria": options, "label": label, "src": src}
    return {"answer": question}


def score(instructions: str, levels: list[str], label: int, src: str) -> dict[str, dict[str, Any]]:
    """The questions of a record that asks for one of `levels`, lowest first."""
    question = {"type": "score", "instructions": instructions, "criteria": levels, "label": label, "src": src}
    return {"answer": question}
