"""Distributions as the answers of the API, in four decimals: 255 of them still add up to 1 within 0.02."""

from collections.abc import Sequence
from typing import Any

from kev.data.record import Asked
from kev.data.render import render

DECIMALS = 4


def answer_json(asked: Asked, p: Sequence[float]) -> dict[str, Any]:
    """The answer to one question whose options have the probabilities `p`, in the order of its keys."""
    if asked.type == "noul":
        return {"type": "noul", "noul": round(p[1], DECIMALS)}
    probabilities = {key: round(value, DECIMALS) for key, value in zip(asked.keys, p, strict=True)}
    if asked.type == "choice":
        best = max(range(len(p)), key=p.__getitem__)
        return {
            "type": "choice",
            "choice": asked.keys[best],
            "confidence": round(choice_confidence(p), DECIMALS),
            "probabilities": probabilities,
        }
    return {
        "type": "score",
        "score": round(sum(level * value for level, value in enumerate(p)), DECIMALS),
        "legend": {str(level): render(text) for level, text in enumerate(asked.criteria)},
        "probabilities": probabilities,
        "confidence": round(score_confidence(p), DECIMALS),
    }


def choice_confidence(p: Sequence[float]) -> float:
    """How far the largest probability is from an even spread (0) towards certainty (1)."""
    if len(p) == 1:
        return 1.0
    even = 1 / len(p)
    return (max(p) - even) / (1 - even)


def score_confidence(p: Sequence[float]) -> float:
    """1 minus the expected distance from the likeliest level, as a share of the scale."""
    if len(p) == 1:
        return 1.0
    mode = max(range(len(p)), key=p.__getitem__)
    return 1 - sum(value * abs(level - mode) for level, value in enumerate(p)) / (len(p) - 1)
