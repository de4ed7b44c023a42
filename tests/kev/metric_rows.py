"""Rows that tests of metrics measure, and how exactly a figure must agree."""

from typing import Any

import numpy as np
import pytest

from kev.metrics import Rows, rows_from_json


def row(number: int, logits: list[float], label: int, /, **changes: Any) -> dict[str, Any]:
    e = np.exp(np.array(logits) - max(logits))
    return {
        "id": f"r{number:03d}", "group": f"g{number // 2}", "question": "q", "source": "s", "task": "s",
        "type": "choice", "variant": "clean", "keys": [f"k{k}" for k in range(len(logits))], "label": label,
        "p": (e / e.sum()).tolist(), "logits": logits, **changes,
    }  # fmt: skip


def answers(*entries: tuple[list[float], int]) -> Rows:
    """Rows with saved probabilities and no logits."""
    return rows_from_json([row(i, [0.0] * len(p), label, p=p, logits=None) for i, (p, label) in enumerate(entries)])


def exactly(value: float) -> Any:
    # The absolute part is a rounding of numbers near 1, whose difference may itself be 0.
    return pytest.approx(value, rel=1e-12, abs=1e-15)
