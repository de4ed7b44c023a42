"""A linear model of answers: a few plain features of each option, and weights fitted by conditional logit.

It knows words, mentions and numbers, but neither grammar nor arithmetic: what it gets right, a model need not have
read the text for. It fits in a second, needs no accelerator, and is the same on every run.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kev.data.record import Asked, DataRecord
from kev.data.render import render
from kev.predictors.prediction import Request

Floats = NDArray[np.float64]

WORD = re.compile(r"[\w'-]+")
NUMBER = re.compile(r"\d+")
MAX_DIGITS = 15

SMOOTHING = 1.0
"""Labels that every option of a question is credited with before any is counted."""

FEATURES = (
    "prior",
    "overlap",
    "mentions",
    "first mention",
    "last mention",
    "number order",
    "number level",
    "number after",
)

RIDGE = 1e-4
STEPS = 20


@dataclass(frozen=True)
class LinearModel:
    """Weights of FEATURES, and how often each answer was right in training, by question type and number of options."""

    weights: Floats
    priors: dict[tuple[str, int], Counter[int]]

    def logits(self, shown: DataRecord | Request, question: Asked) -> list[float]:
        """One logit for each option of a question about what is shown, in the order of its keys."""
        features = option_features(render(shown.state), question, self.priors)
        # Row by row, so that options of equal features get equal logits to the last bit.
        return [float((row * self.weights).sum()) for row in features]


def fit(records: Iterable[DataRecord]) -> LinearModel:
    """The model of least mean loss on `records`, with a small ridge; choices add nothing to the priors, since their
    options are other names in every record.
    """
    asked = [(record, question) for record in records for question in record.questions.values()]
    priors: dict[tuple[str, int], Counter[int]] = {}
    for _, question in asked:
        if question.type != "choice":
            priors.setdefault(_kind(question), Counter())[question.label_index] += 1
    examples = [
        (option_features(render(record.state), question, priors), question.label_index) for record, question in asked
    ]
    return LinearModel(_fit_weights(examples), priors)


def option_features(state: str, question: Asked, priors: dict[tuple[str, int], Counter[int]]) -> Floats:
    """(options, FEATURES): what is known of each option without understanding anything."""
    seen = words(state) | words(render(question.instructions))
    text, numbers = state.casefold(), [float(n[:MAX_DIGITS]) for n in NUMBER.findall(state)]
    counts = priors.get(_kind(question), Counter())
    total = sum(counts.values()) + SMOOTHING * len(question.keys)
    rows = []
    for place, (key, option) in enumerate(zip(question.keys, question.options, strict=True)):
        scale = place / (len(question.keys) - 1) - 0.5 if len(question.keys) > 1 else 0.0
        named = question.type == "choice"
        first, last = (text.find(key.casefold()), text.rfind(key.casefold())) if named else (-1, -1)
        rows.append(
            [
                math.log((counts[place] + SMOOTHING) / total),
                overlap(words(option), seen),
                math.log1p(text.count(key.casefold())) if named else 0.0,
                first / len(text) if first >= 0 else 0.0,
                last / len(text) if last >= 0 else 0.0,
                scale * _order(numbers) if question.type == "noul" else 0.0,
                scale * _level(numbers) if question.type == "score" else 0.0,
                _number_after(text, last) if last >= 0 else 0.0,
            ]
        )
    return np.array(rows)


def words(text: str) -> set[str]:
    """The words of `text`, without case."""
    return set(WORD.findall(text.casefold()))


def overlap(option: set[str], seen: set[str]) -> float:
    """The share of an option's words that were seen; 0 for an option without words."""
    return len(option & seen) / len(option) if option else 0.0


def _kind(question: Asked) -> tuple[str, int]:
    return question.type, len(question.keys)


def _order(numbers: list[float]) -> float:
    """Whether the last number passes the first: 1, -1, or 0 for equal or absent ones."""
    return float(np.sign(numbers[-1] - numbers[0])) if numbers else 0.0


def _level(numbers: list[float]) -> float:
    """Where the last number lies among all of them, from -1 to 1."""
    return 2 * sum(number < numbers[-1] for number in numbers) / len(numbers) - 1 if numbers else 0.0


def _number_after(text: str, place: int) -> float:
    """The first number after a mention, on a scale where 100 is 1."""
    found = NUMBER.search(text, place)
    return min(float(found[0][:MAX_DIGITS]) / 100, 10.0) if found else 0.0


def _fit_weights(examples: list[tuple[Floats, int]]) -> Floats:
    """The weights of least mean loss plus ridge, by Newton's steps: the loss is convex, and there are few weights."""
    weights = np.zeros(len(FEATURES))
    if not examples:
        return weights
    widest = max(len(rows) for rows, _ in examples)
    x = np.zeros((len(examples), widest, len(FEATURES)))
    inside = np.zeros((len(examples), widest), dtype=bool)
    right = np.zeros((len(examples), widest))
    for number, (rows, label) in enumerate(examples):
        x[number, : len(rows)], inside[number, : len(rows)], right[number, label] = rows, True, 1.0
    for _ in range(STEPS):
        z = np.where(inside, (x * weights).sum(axis=2), -np.inf)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = ((right - p)[:, :, None] * x).sum(axis=1).mean(axis=0) - RIDGE * weights
        centred = x - (p[:, :, None] * x).sum(axis=1, keepdims=True)
        curvature = np.einsum("nk,nki,nkj->ij", p, centred, centred) / len(examples) + RIDGE * np.eye(len(FEATURES))
        weights = weights + np.linalg.solve(curvature, gradient)
    return weights
