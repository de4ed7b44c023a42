"""A predictor on this machine: whatever turns requests into tokens and tokens into logits."""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from kev.predictors.distribution import BadDistribution, answer_of_logits
from kev.predictors.prediction import Answer, Outcome, Prediction, Refusal, Request
from kev.text import shorten, visible

BATCH = 32


class TooLong(ValueError):
    """A request does not fit a scorer's context."""


class Encoded(Protocol):
    """A request as a scorer reads it."""

    @property
    def tokens(self) -> int:
        """All of it, questions included."""
        ...

    @property
    def state_tokens(self) -> int: ...


class Scorer(Protocol):
    """A model on this machine. `encode` may be called from any thread, `score` from one at a time."""

    @property
    def temperature(self) -> float:
        """What its logits are divided by; 1 is raw."""
        ...

    def encode(self, request: Request) -> Encoded:
        """Raises TooLong, saying by how much, for a request over the context's limits."""
        ...

    def score(self, encoded: Sequence[Any]) -> list[list[list[float]]]:
        """Logits for each request, question and option, divided by the temperature."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` alone."""
        ...

    def kernels(self, encoded: Any) -> str | None:
        """How a request was computed, where it was not computed exactly; None for the exact way."""
        ...

    def identity(self) -> dict[str, Any]: ...

    def describe(self) -> dict[str, Any]: ...


class LocalPredictor:
    """Answers with a scorer, a batch at a time."""

    concurrency = 1

    def __init__(self, scorer: Scorer, *, batch: int = BATCH) -> None:
        self.scorer = scorer
        self.batch = batch

    def identity(self) -> dict[str, Any]:
        # Which requests share a pass moves the last digits, so another batch is another read.
        return {**self.scorer.identity(), "batch": self.batch}

    def describe(self) -> dict[str, Any]:
        return {**self.scorer.describe(), "calibration_applied": self.scorer.temperature != 1.0, "remote": None}

    def predict(self, requests: Sequence[Request]) -> list[Outcome]:
        began = time.perf_counter()
        outcomes: list[Outcome | None] = []
        encoded: list[Encoded] = []
        for request in requests:
            try:
                encoded.append(self.scorer.encode(request))
                outcomes.append(None)
            except TooLong as error:
                outcomes.append(Refusal(str(error)))
        scored = iter(zip(encoded, self.scorer.score(encoded), strict=True)) if encoded else iter(())
        elapsed = (time.perf_counter() - began) * 1000 / max(1, len(requests))
        return [
            outcome if outcome is not None else self._prediction(request, *next(scored), elapsed)
            for request, outcome in zip(requests, outcomes, strict=True)
        ]

    def stop(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Nothing is held."""

    def _prediction(self, request: Request, encoded: Encoded, logits: list[list[float]], elapsed: float) -> Prediction:
        answers = {name: _answer(request, name, each) for name, each in zip(request.questions, logits, strict=True)}
        return Prediction(
            answers,
            latency_ms=elapsed,
            input_tokens=encoded.tokens,
            state_tokens=encoded.state_tokens,
            temperature=self.scorer.temperature,
            kernels=self.scorer.kernels(encoded),
        )


def _answer(request: Request, question: str, logits: list[float]) -> Answer:
    try:
        return answer_of_logits(logits)
    except BadDistribution as error:
        where = shorten(visible(f"record {request.name}, question {question}"), 300)
        raise BadDistribution(
            f"{where}: {error}; the checkpoint's training diverged, or its files are damaged: take another one"
        ) from None
