"""Option orders averaged out: each choice is asked in its first n cyclic rotations, and the logits are averaged."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kev.data.record import Asked
from kev.metrics.rows import EPSILON
from kev.predictors.distribution import answer_of_logits
from kev.predictors.prediction import Answer, Outcome, Prediction, Predictor, Refusal, Request


class RotationAveraged:
    """A predictor that asks another one `rotations` times. A request of which one rotation is refused is refused."""

    def __init__(self, inner: Predictor, rotations: int) -> None:
        if rotations < 1:
            raise ValueError("there is at least one rotation")
        self._inner = inner
        self._rotations = rotations
        self.batch = inner.batch
        self.concurrency = inner.concurrency

    def identity(self) -> dict[str, Any]:
        return self._inner.identity()

    def describe(self) -> dict[str, Any]:
        return self._inner.describe()

    def predict(self, requests: Sequence[Request]) -> list[Outcome]:
        turned = [self._turns(request) for request in requests]
        flat = [each for turns in turned for each in turns]
        outcomes = iter(self._inner.predict(flat))
        return [
            _average(request, [next(outcomes) for _ in turns]) for request, turns in zip(requests, turned, strict=True)
        ]

    def stop(self) -> None:
        self._inner.stop()

    def close(self) -> None:
        self._inner.close()

    def _turns(self, request: Request) -> list[Request]:
        # A choice of k options has k rotations; a request without a longer one is not asked the same again.
        widest = max((len(each.keys) for each in request.questions.values() if each.type == "choice"), default=1)
        return [_rotated(request, turn) for turn in range(min(self._rotations, widest))]


def _rotated(request: Request, turn: int) -> Request:
    if not turn:
        return request
    return replace(request, questions={name: _rotate(each, turn) for name, each in request.questions.items()})


def _rotate(asked: Asked, turn: int) -> Asked:
    if asked.type != "choice":
        return asked
    options = list(asked.criteria.items())
    turn %= len(options)
    criteria = dict(options[turn:] + options[:turn])
    return Asked.model_construct(type=asked.type, instructions=asked.instructions, criteria=criteria)


def _average(request: Request, outcomes: Sequence[Outcome]) -> Outcome:
    predictions = []
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            return outcome
        predictions.append(outcome)
    first = predictions[0]
    return replace(
        first,
        answers={name: _averaged(asked, name, predictions) for name, asked in request.questions.items()},
        latency_ms=_sum([each.latency_ms for each in predictions]),
        input_tokens=_whole_sum([each.input_tokens for each in predictions]),
        output_tokens=_whole_sum([each.output_tokens for each in predictions]),
    )


def _averaged(asked: Asked, name: str, predictions: Sequence[Prediction]) -> Answer:
    answers = [each.answers[name] for each in predictions]
    if asked.type != "choice" or len(answers) == 1:
        return answers[0]
    size = len(asked.keys)
    totals = [0.0] * size
    turns = min(len(answers), size)  # beyond its own number of options a choice is in an order it has been in
    for turn, answer in enumerate(answers[:turns]):
        scale = answer.logits or [math.log(max(p, EPSILON)) for p in answer.p]
        for place, value in enumerate(scale):
            totals[(place + turn) % size] += value / turns
    averaged = answer_of_logits(totals)
    return averaged if all(answer.logits for answer in answers) else replace(averaged, logits=None)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _whole_sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
