"""Whether an answer depends on what else is asked: the first clean records, packed, alone, and behind a stranger."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kev.data.record import Asked, DataRecord
from kev.predictors.prediction import Prediction, Predictor, Refusal, Request, request_of

RECORDS = 8

TOLERANCES = {"fp32": 0.001, "bf16": 0.03, "fp16": 0.03}
"""How far a probability may move, by the type that the model computes in. In fp32 nothing but rounding may show; half
precision rounds at about 0.004 of a logit's size, and served models of it were measured at up to 0.03."""

STRANGER = "__stranger__"
SECRET = Asked.model_construct(type="noul", instructions="Is the word on the sealed card 'heliotrope'?", criteria=None)


@dataclass(frozen=True, slots=True)
class MechanismCheck:
    """The largest changes of a probability, and the tolerance they are held to."""

    n: int
    packed_max_delta: float
    sibling_max_delta: float
    tolerance: float
    dtype: str

    @property
    def passed(self) -> bool:
        return self.n > 0 and max(self.packed_max_delta, self.sibling_max_delta) < self.tolerance

    def to_json(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "packed_max_delta": self.packed_max_delta,
            "sibling_max_delta": self.sibling_max_delta,
            "tolerance": self.tolerance,
            "dtype": self.dtype,
            "passed": self.passed,
        }


def check_mechanism(predictor: Predictor, records: Sequence[DataRecord], dtype: str) -> MechanismCheck:
    """Compare the answers to the first clean records with those given alone, and behind an unrelated question.

    Records that the predictor refuses in any form are left out. Raises what the predictor raises.
    """
    checked, packed, sibling = 0, 0.0, 0.0
    for record in [each for each in records if each.meta.variant == "clean"][:RECORDS]:
        whole = request_of(record)
        alone = [replace(whole, questions={name: asked}) for name, asked in whole.questions.items()]
        behind = replace(whole, questions={STRANGER: SECRET, **whole.questions})
        outcomes = _answers(predictor, [whole, *alone, behind])
        if outcomes is None:
            continue
        checked += 1
        first, *singles, last = outcomes
        packed = max(
            [packed, *(_delta(first, single, name) for name, single in zip(whole.questions, singles, strict=True))]
        )
        sibling = max([sibling, *(_delta(first, last, name) for name in whole.questions)])
    tolerance = TOLERANCES.get(dtype, TOLERANCES["fp32"])
    return MechanismCheck(checked, packed, sibling, tolerance, dtype)


def _answers(predictor: Predictor, requests: Sequence[Request]) -> list[Prediction] | None:
    # One at a time: what shares a pass with a record is what is being tested.
    found = []
    for request in requests:
        [outcome] = predictor.predict([request])
        if isinstance(outcome, Refusal):
            return None
        found.append(outcome)
    return found


def _delta(one: Prediction, other: Prediction, name: str) -> float:
    return max(abs(a - b) for a, b in zip(one.answers[name].p, other.answers[name].p, strict=True))
