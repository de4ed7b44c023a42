"""How well a policy answers, and what a reinforcement returns."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kev.data.record import DataRecord
from kev.metrics.calibration import expected_calibration_error

if TYPE_CHECKING:
    from kev.model.decision_model import DecisionModel


@dataclass(frozen=True, slots=True)
class Judged:
    """Means over the questions of some records, at the model's temperature."""

    questions: int
    accuracy: float
    """Share whose likeliest option is the label."""
    drawn_accuracy: float
    """Mean probability of the label: the share right if answers were drawn."""
    nll: float
    brier: float
    ece: float
    entropy: float
    """In nats."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        """The figures in words, for the log."""
        return (
            f"accuracy {self.accuracy:.4f} (drawn {self.drawn_accuracy:.4f}) Brier {self.brier:.4f} "
            f"ECE {self.ece:.4f} NLL {self.nll:.4f} entropy {self.entropy:.4f}, {self.questions:,} questions"
        )


@dataclass(frozen=True, slots=True)
class RlReport:
    """A finished reinforcement."""

    checkpoint: Path
    steps: int
    """Optimizer steps, over all attempts."""
    before: Judged | None
    """None where there were no held-out records."""
    after: Judged | None
    resources: dict[str, Any] = field(default_factory=dict)
    resumed_from: int | None = None
    warnings: tuple[str, ...] = ()
    already_finished: bool = False


def judge(model: "DecisionModel", records: Sequence[DataRecord]) -> Judged | None:
    """How `model` answers `records`; None for none. Raises ContextOverflow for a record that is too long."""
    if not records:
        return None
    scored = model.score([model.encoder.encode_record(record) for record in records])
    labels = [question.label_index for record in records for question in record.questions.values()]
    rows = [logits.double().log_softmax(-1).numpy() for record in scored for logits in record]
    right = np.array([row[label] for row, label in zip(rows, labels, strict=True)])
    correct = np.array([float(row.argmax() == label) for row, label in zip(rows, labels, strict=True)])
    squares = np.array([np.exp(2 * row).sum() for row in rows])
    confidence = np.array([np.exp(row.max()) for row in rows])
    return Judged(
        questions=len(rows),
        accuracy=float(correct.mean()),
        drawn_accuracy=float(np.exp(right).mean()),
        nll=float(-right.mean()),
        brier=float((squares - 2 * np.exp(right) + 1).mean()),
        ece=expected_calibration_error(confidence, correct),
        entropy=float(np.mean([-(np.exp(row) * row).sum() for row in rows])),
    )
