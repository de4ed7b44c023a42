"""What is to be read: a suite's partition, or a file of records that belongs to no suite."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kev import files
from kev.data.record import DataRecord
from kev.errors import DamagedFile, DamagedLine
from kev.records.base import reason_of
from kev.suite import MAX_PARTITION_BYTES, Suite
from kev.text import shorten

CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Selection:
    """Records, and where they are from. `sha256` is that of the suite's manifest, or of the file."""

    records: list[DataRecord]
    origin: Path
    split: str
    sha256: str
    manifest: dict[str, Any]
    """The suite's manifest as JSON; {} for a file."""
    may_skip: bool
    """Whether a record that is too long is counted and left out, where it would end any other read."""

    @property
    def questions(self) -> int:
        return sum(len(record.questions) for record in self.records)

    def sample(self, size: int | None) -> "Selection":
        """Whole groups of records, at least `size` records in all, or everything where there are fewer or no size.

        Which groups is fixed by the hashes of their names, so that two reads of one size read the same records; they
        stay in the order of the partition, and pairs, twins and variants stay together.
        """
        if size is None or size >= len(self.records):
            return self
        members = Counter(record.meta.group_id for record in self.records)
        chosen: set[str] = set()
        taken = 0
        for group in sorted(members, key=lambda name: hashlib.sha256(name.encode(errors="surrogatepass")).digest()):
            if taken >= size:
                break
            chosen.add(group)
            taken += members[group]
        return replace(self, records=[record for record in self.records if record.meta.group_id in chosen])


def select_partition(suite: Suite, split: str, *, allow_test: bool = False) -> Selection:
    """A suite's partition. Raises what reading it raises, and DamagedFile for a record that cannot be asked."""
    path = suite.partition_path(split)
    records = []
    for number, value in enumerate(suite.read_partition(split, allow_test=allow_test), start=1):
        record, reason = _record(value)
        if record is None:
            raise DamagedFile(path, f"record {number}: {reason}")
        records.append(record)
    return Selection(
        records, suite.directory, split, suite.sha256, suite.manifest.to_json(), may_skip=suite.manifest.eval_only
    )


def select_file(path: Path) -> Selection:
    """The records of a JSONL file. Raises NotFound, DamagedFile, or DamagedLine naming the line and what is wrong.

    Lines end at a newline and nowhere else. What `_meta` or a question leaves out is filled in: the source is
    `custom`, id and group are `custom/<line>`, the task is `<source>_<type>`. A key or an id that is given twice is
    refused: one of the two questions or records would stand for both.
    """
    data = files.read_bytes(path, limit=MAX_PARTITION_BYTES)
    lines = data.removeprefix(files.UTF8_BOM).split(b"\n")
    records = []
    line_of: dict[str, int] = {}
    for line in files.parse_json_lines(data):
        if line.damage is not None:
            raise DamagedLine(path, line.number, line.damage)
        if (twice := _repeated_key(lines[line.number - 1])) is not None:
            raise DamagedLine(path, line.number, f"the key {shorten(repr(twice), 80)} is given twice in one object")
        record, reason = _record(_filled(line.value, line.number))
        if record is None:
            raise DamagedLine(path, line.number, reason)
        first = line_of.setdefault(record.meta.id, line.number)
        if first != line.number:
            known = shorten(repr(record.meta.id), 80)
            raise DamagedLine(path, line.number, f"the id {known} is that of line {first}; give each record its own")
        records.append(record)
    if not records:
        raise DamagedFile(path, "holds no records")
    return Selection(records, path, CUSTOM, hashlib.sha256(data).hexdigest(), {}, may_skip=True)


def _repeated_key(line: bytes) -> str | None:
    """The first key that an object of `line`, which is JSON, gives twice; readers differ in which one counts."""
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        counts = Counter(key for key, _ in pairs)
        found.extend(key for key, count in counts.items() if count > 1)

    with suppress(RecursionError):
        json.loads(line.removeprefix(files.UTF8_BOM), object_pairs_hook=note)
    return found[0] if found else None


def _record(value: Any) -> tuple[DataRecord | None, str]:
    """The record, or why it is none: one question of it cannot be asked or scored. Targets and hashes of texts are
    not looked at: a read does not train, and frozen suites of every age must stay readable."""
    try:
        record = DataRecord.model_validate(value)
    except ValidationError as error:
        return None, reason_of(error)
    if not record.questions:
        return None, "has no questions"
    for name, question in record.questions.items():
        try:
            keys = question.keys
            question.options  # noqa: B018 - rendering them is the check
            label = question.label_index
        except (ValueError, TypeError, AttributeError):
            return None, f"question {name}: its criteria or its label are not those of a {question.type}"
        if not keys or not 0 <= label < len(keys):
            return None, f"question {name}: the label {question.label!r} is none of its {len(keys)} options"
    return record, ""


def _filled(value: Any, line: int) -> Any:
    if not isinstance(value, dict):
        return value
    name = f"{CUSTOM}/{line}"
    given = value.get("_meta")
    meta = {"source": CUSTOM, "variant": "clean", "id": name, "group_id": name, "split": CUSTOM}
    meta |= dict(given) if isinstance(given, dict) else {}
    questions = value.get("questions")
    if isinstance(questions, dict):
        value = {**value, "questions": dict(_with_task(questions, str(meta["source"])))}
    return {**value, "_meta": meta}


def _with_task(questions: dict[str, Any], source: str) -> Iterator[tuple[str, Any]]:
    for name, question in questions.items():
        if isinstance(question, dict) and not question.get("src"):
            yield name, {**question, "src": f"{source}_{question.get('type')}"}
        else:
            yield name, question
