"""A prediction as rows.json holds it: one object for each question."""

from typing import Any

from kev.data.record import DataRecord
from kev.predictors.prediction import Prediction


def rows_of(record: DataRecord, prediction: Prediction) -> list[dict[str, Any]]:
    """The rows of one record. Keys that a predictor knows nothing of are left out."""
    meta = record.meta
    rows = []
    for name, question in record.questions.items():
        answer = prediction.answers[name]
        optional = {
            "logits": list(answer.logits) if answer.logits is not None else None,
            "inference_temperature": prediction.temperature,
            "kernels": prediction.kernels,
            "state_tokens": prediction.state_tokens,
        }
        rows.append(
            {
                "id": meta.id,
                "group": meta.group_id,
                "question": name,
                "source": meta.source,
                "task": question.src,
                "type": question.type,
                "variant": meta.variant,
                "keys": question.keys,
                "label": question.label_index,
                "control_id": meta.control_id,
                "pair_id": meta.pair_id,
                "sibling": meta.sibling,
                "parent": meta.parent_id,
                "p": list(answer.p),
                "raw_probability_sum": answer.total,
                "zero_count": answer.zeros,
                **{key: value for key, value in optional.items() if value is not None},
            }
        )
    return rows


def prediction_json(record: DataRecord, prediction: Prediction) -> dict[str, Any]:
    """The prediction as a line of predictions.jsonl holds it."""
    return {
        "probabilities": {
            name: dict(zip(question.keys, prediction.answers[name].p, strict=True))
            for name, question in record.questions.items()
        },
        "latency_ms": prediction.latency_ms,
        "input_tokens": prediction.input_tokens,
        "output_tokens": prediction.output_tokens,
    }
