"""Whether two files of records hold the same texts, whatever their ids, sources and suites are called.

A record is known by a hash of its state after case, spacing and Unicode form are evened out. Where the state is too
short to tell one record from another, the questions' instructions are hashed with it.
"""

import hashlib
import json
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SHORT_STATE = 40
"""Characters below which many unrelated records share a state: an empty one, a greeting, a single word."""

FEW = 0.01
"""The share of pooled records found in training up to which the overlap can be chance, and is warned about."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Pooled records whose text is in the training data."""

    shared: int
    total: int
    example: tuple[str, str]
    """The id of one of them, and the id it has there."""

    @property
    def is_few(self) -> bool:
        return self.shared <= self.total * FEW


def fingerprint(record: Mapping[str, Any]) -> bytes:
    """16 bytes that two records of the same text share."""
    text = _even(record.get("state"))
    if len(text) < SHORT_STATE:
        questions = record.get("questions")
        asked = sorted(_even(question) for question in _instructions(questions))
        text = "\n".join([text, *asked])
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def find_overlap(
    pooled: Iterable[Mapping[str, Any]], trained: Iterable[Mapping[str, Any]], sources: Collection[str] | None = None
) -> Overlap | None:
    """The texts of `pooled`, of the given sources only, that are in `trained` too; None when there is none."""
    wanted: dict[bytes, list[str]] = {}
    total = 0
    for record in pooled:
        if sources is None or _meta(record, "source") in sources:
            wanted.setdefault(fingerprint(record), []).append(_meta(record, "id"))
            total += 1
    found: dict[bytes, str] = {}
    for record in trained:
        mark = fingerprint(record)
        if mark in wanted:
            found.setdefault(mark, _meta(record, "id"))
    if not found:
        return None
    first = next(iter(found))
    return Overlap(sum(len(wanted[mark]) for mark in found), total, (wanted[first][0], found[first]))


def _instructions(questions: Any) -> list[Any]:
    if not isinstance(questions, dict):
        return []
    return [question.get("instructions") for question in questions.values() if isinstance(question, dict)]


def _even(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _meta(record: Mapping[str, Any], key: str) -> str:
    meta = record.get("_meta")
    return str(meta.get(key)) if isinstance(meta, dict) else "?"
