"""Requests and answers. A request holds no label and no source: a predictor cannot see what it is scored on."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kev.data.record import Asked, DataRecord


@dataclass(frozen=True, slots=True)
class Request:
    """One state and the questions about it. `name` is for messages, and is never sent anywhere."""

    name: str
    state: Any
    questions: Mapping[str, Asked]

    def body(self) -> dict[str, Any]:
        """What leaves this machine: the state and, of each question, its type, instructions and criteria."""
        questions = {
            name: {"type": asked.type, "instructions": asked.instructions, "criteria": asked.criteria}
            for name, asked in self.questions.items()
        }
        return {"state": self.state, "questions": questions}

    def sha256(self) -> str:
        """The hash of the body: two requests that look alike to a predictor have one."""
        text = json.dumps(self.body(), ensure_ascii=False)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def request_of(record: DataRecord, *, state: Any = None) -> Request:
    """What a predictor is shown of a record; `state` stands in for the record's own if it is given."""
    questions = {
        name: Asked.model_construct(type=each.type, instructions=each.instructions, criteria=each.criteria)
        for name, each in record.questions.items()
    }
    return Request(record.meta.id, record.state if state is None else state, questions)


@dataclass(frozen=True, slots=True)
class Answer:
    """A distribution over one question's options, in the order of its keys; `logits` as served, where there are any.

    `total` and `zeros` are of the numbers as they were returned, before they were made to add up to 1.
    """

    p: tuple[float, ...]
    total: float
    zeros: int
    logits: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """Answers to every question of a request, by name."""

    answers: Mapping[str, Answer]
    latency_ms: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    state_tokens: int | None = None
    temperature: float | None = None
    """What the logits were divided by; None where the predictor does not tell."""
    kernels: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that the predictor will not answer, however often it is asked; `status` is that of HTTP, if any."""

    reason: str
    status: int | None = None


Outcome = Prediction | Refusal


class Predictor(Protocol):
    """Something that answers requests, several at a time if it can."""

    @property
    def batch(self) -> int:
        """Requests that are best asked together."""
        ...

    @property
    def concurrency(self) -> int:
        """Calls of `predict` that may run at the same time, in threads."""
        ...

    def identity(self) -> dict[str, Any]:
        """What the answers depend on, as JSON: a read is only continued by a predictor of equal identity."""
        ...

    def describe(self) -> dict[str, Any]:
        """The keys of a report that say who answered: `run`, `environment`, `remote`, `calibration_applied`."""
        ...

    def predict(self, requests: Sequence[Request]) -> list[Outcome]:
        """An outcome for each request, in order. Raises KevError where nothing more can be answered."""
        ...

    def stop(self) -> None:
        """Let calls under way finish, and none of them wait for another try. May be called from any thread."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
