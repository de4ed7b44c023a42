"""The seam between the grader and whatever grades: a model, a split and a draw in, a score out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from kev.records.base import StrictRecord

Split = Literal["validation", "hidden"]
"""`validation` is what submissions are graded on while the run lasts; `hidden` is for the final alone."""


class Evaluation(StrictRecord):
    """What an evaluator says of a model."""

    benchmark: str
    model_path: str
    score: float | None
    """0 to 100; None with an `error`."""
    items: int = 0
    """How many the score is a share of."""
    accuracy_summary: dict[str, Any] | None = None
    eval_type: str | None = None
    error: str | None = None
    raw_output: Any = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One grading: of a sealed model, on one draw of a split."""

    model: Path
    split: Split
    seed: int
    gpus: Sequence[str] = ()


class Evaluator(Protocol):
    """Grades one model at a time. What it raises, or a score that is none, is an error of that grading only."""

    @property
    def identity(self) -> str:
        """A hash of everything that decides a score: task, items, template, sampling, code."""
        ...

    async def evaluate(self, asked: Asked) -> Evaluation: ...


def checked(evaluation: Evaluation) -> Evaluation:
    """The evaluation, failed closed: a score is a finite number from 0 to 100 on at least one item, or an error."""
    if evaluation.error is not None:
        return evaluation.model_copy(update={"score": None})
    words = None
    if evaluation.score is None:
        words = "the evaluator gave no score"
    elif not 0 <= evaluation.score <= 100:  # false for NaN as well
        words = f"the evaluator's score {evaluation.score} is no number from 0 to 100"
    elif evaluation.items <= 0:
        words = "the evaluator graded no item"
    return evaluation if words is None else evaluation.model_copy(update={"score": None, "error": words})
