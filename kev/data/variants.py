"""Variants of clean records, by which a read shows whether order or a none-of-these option moves a model."""

from typing import Any

from kev.data.draw import Draw
from kev.data.record import DataRecord

NONE_KEY = "none_of_these"
NONE_TEXT = "None of the other options fits."
PER_SOURCE = 12
"""Records of a source that get variants."""

MIN_OPTIONS = 3


def variants(draw: Draw, records: list[DataRecord]) -> list[DataRecord]:
    """Three variants of the first 12 records of each source that ask a choice of at least three options."""
    made: list[DataRecord] = []
    used: dict[str, int] = {}
    for record in records:
        options = _options(record)
        if len(options) < MIN_OPTIONS or used.get(record.meta.source, 0) == PER_SOURCE:
            continue
        used[record.meta.source] = used.get(record.meta.source, 0) + 1
        label = str(record.questions["answer"].label)
        with_none = {**options, NONE_KEY: NONE_TEXT}
        without_label = {key: text for key, text in with_none.items() if key != label}
        made.append(_variant(record, "none_present", with_none, label))
        made.append(_variant(record, "none_absent", without_label, NONE_KEY))
        made.append(_variant(record, "permuted", dict(_moved(draw, list(options.items()))), label))
    return made


def _moved(draw: Draw, options: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    while (order := draw.shuffled(options)) == options:
        pass
    return order


def _options(record: DataRecord) -> dict[str, Any]:
    question = record.questions.get("answer")
    return dict(question.criteria) if question is not None and question.type == "choice" else {}


def _variant(record: DataRecord, variant: str, options: dict[str, Any], label: str) -> DataRecord:
    values = record.to_json()
    questions = {"answer": {**values["questions"]["answer"], "criteria": options, "label": label}}
    meta = {key: value for key, value in values["_meta"].items() if key != "facts"}
    identity = f"{record.meta.id}#{variant}"
    return DataRecord.build(
        values["state"], questions, **{**meta, "id": identity, "variant": variant, "parent_id": record.meta.id}
    )
