"""The seam to whatever answers questions: a linear model, a language model, a remote one."""

from typing import Protocol

from kev.data.record import DataRecord, Question


class Predictor(Protocol):
    """A checkpoint that answers questions."""

    def logits(self, record: DataRecord, question: Question) -> list[float]:
        """One logit for each option of `question`, in the order of its keys, before any temperature."""
        ...
