"""One training or evaluation record: a state, typed questions about it with their labels, and where it came from."""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr

from kev.data.render import render, text_sha256
from kev.records.base import Record

QuestionType = Literal["choice", "noul", "score"]
Variant = Literal["clean", "permuted", "none_present", "none_absent"]

MAX_OPTIONS = 255
UNKNOWABLE = "unknowable"
CONTROL = "unknowable_control"


class Asked(Record):
    """A typed question as a model sees it: `noul` is yes or no, `choice` a named option, `score` an ordered level."""

    type: QuestionType
    instructions: Any = None
    criteria: Any = None

    @property
    def keys(self) -> list[str]:
        """The option keys in scoring order."""
        match self.type:
            case "noul":
                return ["false", "true"]
            case "choice":
                return list(self.criteria)
            case "score":
                return [str(level) for level in range(len(self.criteria))]

    @property
    def options(self) -> list[str]:
        """The options as the model reads them, in the order of `keys`."""
        if self.type == "score":
            return [render(level) for level in self.criteria]
        names = ["no", "yes"] if self.type == "noul" else self.keys
        # A yes-or-no question needs no descriptions; older suites hold other things in their place.
        texts = self.criteria if isinstance(self.criteria, dict) else {}
        described = [render(texts.get(key)) for key in self.keys]
        return [f"{name}: {text}" if text else name for name, text in zip(names, described, strict=True)]


class Question(Asked):
    """A question and its answer."""

    label: StrictBool | StrictInt | StrictStr
    src: Annotated[str, Field(min_length=1)]
    target: dict[str, float] | None = None

    @property
    def label_index(self) -> int:
        """The position of the label in `keys`."""
        return self.keys.index(self.label) if isinstance(self.label, str) else int(self.label)


class Meta(Record):
    """Where a record came from. `group_id` is the cluster that resampling keeps together."""

    id: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    variant: Variant = "clean"
    group_id: Annotated[str, Field(min_length=1)]
    parent_id: str | None = None
    text_sha256: str | None = None
    pair_id: str | None = None
    sibling: Literal["a", "b"] | None = None
    control_id: str | None = None


class DataRecord(Record):
    """A line of a partition."""

    state: Any
    questions: dict[str, Question]
    meta: Meta = Field(alias="_meta")

    @classmethod
    def build(cls, state: Any, questions: dict[str, dict[str, Any]], **meta: Any) -> Self:
        """A checked record. Raises ValueError, or pydantic's own, which is one."""
        meta.setdefault("variant", "clean")
        meta.setdefault("group_id", meta["id"])
        meta.setdefault("text_sha256", text_sha256(state))
        record = cls.model_validate({"state": state, "questions": questions, "_meta": meta})
        check_record(record)
        return record


def check_record(record: DataRecord) -> None:
    """Raise ValueError, naming record and question, unless every label and target can be meant."""
    meta = record.meta
    if not record.questions:
        raise ValueError(f"record {meta.id}: no questions")
    try:
        found = text_sha256(record.state)
    except ValueError as error:
        raise ValueError(f"record {meta.id}: its state is {error}") from None
    if meta.text_sha256 not in (None, found):
        raise ValueError(f"record {meta.id}: text_sha256 is not that of its state")
    if meta.variant != "clean" and meta.parent_id is None:
        raise ValueError(f"record {meta.id}: a {meta.variant} variant names its parent_id")
    if (meta.pair_id is None) != (meta.sibling is None):
        raise ValueError(f"record {meta.id}: pair_id and sibling go together")
    if meta.source == UNKNOWABLE and meta.control_id is None:
        raise ValueError(f"record {meta.id}: an unknowable record names its control_id")
    for name, question in record.questions.items():
        reason = _fault(question, flat=meta.source == UNKNOWABLE)
        if reason:
            raise ValueError(f"record {meta.id}, question {name}: {reason}")


def check_partition(records: Iterable[DataRecord]) -> None:
    """Raise ValueError unless ids are unique, pairs are whole and flip, and every parent and control is here."""
    by_id: dict[str, DataRecord] = {}
    pairs: dict[str, list[DataRecord]] = defaultdict(list)
    for record in records:
        if record.meta.id in by_id:
            raise ValueError(f"record {record.meta.id}: the id is used twice")
        by_id[record.meta.id] = record
        if record.meta.pair_id is not None and record.meta.variant == "clean":
            pairs[record.meta.pair_id].append(record)
    for record in by_id.values():
        for key in ("parent_id", "control_id"):
            named = getattr(record.meta, key)
            if named is not None and named not in by_id:
                raise ValueError(f"record {record.meta.id}: its {key} {named} is not in this partition")
    for pair, members in pairs.items():
        if sorted(member.meta.sibling or "" for member in members) != ["a", "b"]:
            raise ValueError(f"pair {pair}: {len(members)} members where siblings a and b belong")
        if len({member.meta.group_id for member in members}) > 1:
            raise ValueError(f"pair {pair}: its siblings are in different groups")


def _fault(question: Question, *, flat: bool) -> str | None:
    try:
        render(question.instructions)
        return _shape_fault(question) or _target_fault(question, flat=flat)
    except ValueError as error:
        return str(error)


def _shape_fault(question: Question) -> str | None:
    criteria, label = question.criteria, question.label
    match question.type:
        case "noul":
            if criteria is not None and not (isinstance(criteria, dict) and criteria.keys() <= {"true", "false"}):
                return "noul criteria describe only true and false"
            return None if isinstance(label, bool) else f"the label of a noul is true or false, not {label!r}"
        case "choice":
            if not isinstance(criteria, dict) or not 1 <= len(criteria) <= MAX_OPTIONS:
                return f"a choice has 1 to {MAX_OPTIONS} named options"
            if not isinstance(label, str) or label not in criteria:
                return f"the label {label!r} is none of the options"
        case "score":
            if not isinstance(criteria, list) or not 2 <= len(criteria) <= MAX_OPTIONS:
                return f"a score has 2 to {MAX_OPTIONS} levels"
            if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(criteria):
                return f"the label {label!r} is none of the {len(criteria)} levels"
    options = question.options
    return None if len(set(options)) == len(options) else "two options read the same"


def _target_fault(question: Question, *, flat: bool) -> str | None:
    target = question.target
    if target is None:
        return None
    unknown = sorted(target.keys() - set(question.keys))
    if unknown:
        return f"the target names {unknown[0]!r}, which is no option"
    if any(not math.isfinite(mass) or mass < 0 for mass in target.values()):
        return "a target's masses are finite and not negative"
    if abs(math.fsum(target.values()) - 1) > 1e-9:
        return f"the target sums to {math.fsum(target.values()):.6g}, not 1"
    if not flat and target.get(question.keys[question.label_index], 0.0) < 0.5:
        return "the target gives the label less than 0.5"
    return None
