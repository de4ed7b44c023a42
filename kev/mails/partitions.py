"""Mails to records, one of each cluster of near-copies, and records to partitions: a plan for kev.data.freeze."""

import hashlib
from collections.abc import Iterable, Iterator

from kev.data.draw import Draw
from kev.data.part import Part, noul
from kev.data.record import DataRecord
from kev.data.render import text_sha256
from kev.data.suites import Ingredient, SuitePlan
from kev.errors import Refused
from kev.mails.archive import INTEGRITY, PACKAGE, VERSION, RawMail
from kev.mails.copies import clusters
from kev.mails.message import state_of

SOURCE = "spam_assassin"
SUITE = "spam-v1"
INSTRUCTIONS = "Is this mail spam: unasked for, sent to many, to sell something or to deceive?"

SHARES = {"train": 76, "calibration": 8, "development": 8, "test": 8}
"""Hundredths of the mails. The test partition takes what rounding leaves."""

POLICY = {
    "labels": "as the collection was published: by the directory that a mail lies in",
    "states": "sender, subject and the first 400 characters of text; no other header, since they give the answer away",
    "copies": "of mails that share half of the shorter one's four-word shingles only one is kept, the lowest by hash",
    "partitions": "by the hash of a mail's text, whatever its label",
    "admission": "max_state is in bytes of UTF-8, which no byte-level tokenizer exceeds in tokens",
}


def spam_plan(mails: Iterable[RawMail]) -> SuitePlan:
    """The suite of `mails`. Raises Refused for fewer than one of each partition."""
    records = distinct(mails)
    parts = split(records)
    if not all(parts.values()):
        raise Refused(f"{len(records)} distinct mails are too few for {len(SHARES)} partitions")

    def in_part(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:  # noqa: ARG001 - nothing is drawn
        return ([record] for record in parts[part.name])

    return SuitePlan(
        SUITE,
        "Mails of 2002 and 2003, spam and ham, as SpamAssassin's makers collected them.",
        seed=0,
        ingredients=(Ingredient(in_part, (SOURCE,), {name: len(kept) for name, kept in parts.items()}),),
        trainable=(SOURCE,),
        further={"policy": POLICY, "inputs": {"package": f"{PACKAGE}@{VERSION}", "integrity": INTEGRITY,
                                              "licence": "data PDDL-1.0, contents CC0-1.0"}},
    )  # fmt: skip


def distinct(mails: Iterable[RawMail]) -> list[DataRecord]:
    """A record for each mail that says something, one of each cluster of near-copies, in the order of their hashes."""
    found: dict[str, DataRecord] = {}
    for mail in mails:
        state = state_of(mail.content)
        if state["text"]:
            found.setdefault(text_sha256(state), _record(mail, state))
    keys = sorted(found)
    texts = ["{subject}\n{text}".format_map(found[key].state) for key in keys]
    return [found[keys[cluster[0]]] for cluster in clusters(texts)]


def split(records: list[DataRecord]) -> dict[str, list[DataRecord]]:
    """`records` by partition. Where a mail goes is decided by its own text."""
    order = sorted(records, key=lambda record: hashlib.sha256(f"{SUITE}:{record.meta.text_sha256}".encode()).digest())
    parts: dict[str, list[DataRecord]] = {}
    began = taken = 0
    for name, share in SHARES.items():
        taken += share
        end = len(order) * taken // 100
        parts[name] = order[began:end]
        began = end
    return parts


def _record(mail: RawMail, state: dict[str, str]) -> DataRecord:
    return DataRecord.build(state, noul(INSTRUCTIONS, mail.spam, SOURCE), id=f"{SOURCE}/{mail.name}", source=SOURCE)
