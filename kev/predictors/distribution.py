"""Numbers that came back as probabilities: believed only if they can be a distribution over the question's options."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kev import files
from kev.errors import KevError
from kev.predictors.prediction import Answer
from kev.text import shorten, visible


class BadDistribution(KevError):
    """What a predictor returned is no distribution over the options it was asked about."""


def tolerance(options: int) -> float:
    """How far from 1 the probabilities of `options` may add up: answers are rounded to a few decimals each."""
    return max(1e-5, 0.005 * options + 1e-8)


def answer_of(
    probabilities: Mapping[str, Any], keys: Sequence[str], *, logits: Sequence[float] | None = None
) -> Answer:
    """The answer that `probabilities` by key are, divided by their sum. Raises BadDistribution with the reason."""
    if set(probabilities) != set(keys):
        strange = sorted(set(probabilities) ^ set(keys))
        raise BadDistribution(f"options {_some(strange)} are on one side only")
    values = [_probability(key, probabilities[key]) for key in keys]
    total = math.fsum(values)
    if not abs(total - 1) <= tolerance(len(keys)) or total <= 0:
        raise BadDistribution(f"probabilities add up to {total:.6g}, not to 1")
    if logits is not None and not all(math.isfinite(each) for each in logits):
        raise BadDistribution("a logit is not a finite number")
    return Answer(
        p=tuple(value / total for value in values),
        total=total,
        zeros=values.count(0.0),
        logits=None if logits is None else tuple(logits),
    )


def answer_of_logits(logits: Sequence[float]) -> Answer:
    """The answer that finite logits stand for. Raises BadDistribution."""
    if not logits or not all(math.isfinite(each) for each in logits):
        raise BadDistribution("a logit is not a finite number")
    highest = max(logits)
    weights = [math.exp(each - highest) for each in logits]
    total = math.fsum(weights)
    p = tuple(weight / total for weight in weights)
    return Answer(p=p, total=math.fsum(p), zeros=p.count(0.0), logits=tuple(logits))


def _probability(key: str, value: Any) -> float:
    number = files.as_finite(value)
    if number is None:
        raise BadDistribution(f"option {_some([key])} has {shorten(repr(value), 40)}, which is no finite number")
    if not 0 <= number <= 1:
        raise BadDistribution(f"option {_some([key])} has {number:g}, outside 0 to 1")
    return number


def _some(keys: Sequence[str]) -> str:
    shown = ", ".join(repr(shorten(visible(key), 40)) for key in keys[:3])
    return shown + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
