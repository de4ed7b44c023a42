"""A scorer without torch: the linear model, behind the same seam as a checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev.baseline import read_records
from kev.data.record import Asked
from kev.data.render import render
from kev.linear import LinearModel, fit
from kev.predictors.local import TooLong
from kev.predictors.prediction import Request
from kev.suite import open_suite

EVALS = Path(__file__).parents[2] / "evals"


@dataclass(frozen=True)
class EncodedText:
    request: Request
    tokens: int
    state_tokens: int


@dataclass
class LinearScorer:
    """Counts words as tokens; a state of more than `max_state` is too long."""

    model: LinearModel
    temperature: float = 1.0
    max_state: int = 10_000
    scored: list[int] = field(default_factory=list)
    """How many requests each pass had."""

    def encode(self, request: Request) -> EncodedText:
        words = len(render(request.state).split())
        if words > self.max_state:
            raise TooLong(f"{request.name}: a state of {words} tokens, over the limit of {self.max_state}")
        return EncodedText(request, words + len(request.questions), words)

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        self.scored.append(len(encoded))
        return [[self._logits(each.request, asked) for asked in each.request.questions.values()] for each in encoded]

    def _logits(self, request: Request, asked: Asked) -> list[float]:
        logits = self.model.logits(request, asked)
        return [each / self.temperature for each in logits]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def kernels(self, encoded: EncodedText) -> str | None:
        return None

    def identity(self) -> dict[str, Any]:
        return {"weights": self.model.weights.tolist(), "temperature": self.temperature}

    def describe(self) -> dict[str, Any]:
        return {"run": "linear", "environment": {"backend": "numpy", "device": "cpu", "dtype": "fp64"}}


def trained_scorer(**settings: Any) -> LinearScorer:
    """The linear model of the decision suite."""
    return LinearScorer(fit(read_records(open_suite(EVALS / "decision-v1"), "train")), **settings)
