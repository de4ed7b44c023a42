"""A record as the trainer holds it: texts and option places, with nothing left to look up or to parse."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kev.data.record import DataRecord, Question, QuestionType, check_record
from kev.data.render import render
from kev.errors import Refused
from kev.records.base import reason_of


@dataclass(frozen=True, slots=True)
class Ask:
    """One question, in the shape that the encoder takes.

    `target` is a distribution over the options, or None where the label is all there is. `teacher` is the distribution
    that an anchor holds the model to, or None; a question whose options were changed has none any more.
    """

    name: str
    type: QuestionType
    instructions: str
    options: list[str]
    label: int
    target: tuple[float, ...] | None = None
    teacher: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A state and its questions."""

    id: str
    source: str
    state: str
    asks: tuple[Ask, ...]


Anchors = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Record id to question to option key to probability: what a frozen model answered."""


def examples_of(records: Iterable[DataRecord | Mapping[str, Any]], anchors: Anchors | None = None) -> list[Example]:
    """`records` ready to be trained on. Raises Refused naming the record and what is wrong with it."""
    anchors = anchors or {}
    examples, seen = [], set()
    for number, record in enumerate(records, start=1):
        try:
            checked = record if isinstance(record, DataRecord) else DataRecord.model_validate(record)
            check_record(checked)
        except ValidationError as error:
            raise Refused(f"training record {number}: {reason_of(error)}") from None
        except ValueError as error:
            raise Refused(f"training record {number}: {error}") from None
        # Draws are keyed by the id: two records of one id would be augmented alike and told apart nowhere.
        if checked.meta.id in seen:
            raise Refused(f"training record {number}: the id {checked.meta.id} is used twice")
        seen.add(checked.meta.id)
        examples.append(_example(checked, anchors.get(checked.meta.id, {})))
    if not examples:
        raise Refused("there are no records to train on")
    return examples


def _example(record: DataRecord, teachers: Mapping[str, Mapping[str, float]]) -> Example:
    asks = tuple(_ask(name, question, teachers.get(name)) for name, question in record.questions.items())
    return Example(record.meta.id, record.meta.source, render(record.state), asks)


def _ask(name: str, question: Question, teacher: Mapping[str, float] | None) -> Ask:
    return Ask(
        name,
        question.type,
        render(question.instructions),
        question.options,
        question.label_index,
        _distribution(question, question.target),
        # A teacher that answered other options than these says nothing about them.
        _distribution(question, teacher) if teacher is not None and set(teacher) == set(question.keys) else None,
    )


def _distribution(question: Question, masses: Mapping[str, float] | None) -> tuple[float, ...] | None:
    if masses is None:
        return None
    ordered = [masses.get(key, 0.0) for key in question.keys]
    total = math.fsum(ordered)
    return tuple(mass / total for mass in ordered) if total > 0 else None
