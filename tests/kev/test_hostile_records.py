"""Whatever stands where in a file of a known shape, its reader gives a record or DamagedFile, and nothing else."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_examples import (
    CURRENT,
    DOCUMENTS,
    EXAMPLES,
    NIGHT,
    OLD_DOCS,
    OLD_LOCKED,
    OLD_TESTS,
    SKILLS,
    STATE,
    row,
)

from kev.errors import DamagedFile
from kev.records.base import parse_record
from kev.records.billing import read_metered_cost
from kev.records.readout import parse_readout
from kev.records.rows import parse_rows
from kev.records.verdict import parse_verdict
from kev.session import parse_session, session_of_budget

PLACE = Path("runs/r70-readout/round70.json")

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)

CURRENT_VERDICT = {"round": 70, "stage": "tests", "arm": "2b-read", **CURRENT["arms"]["2b-read"]}


def use_readout(value: Any) -> None:
    for arm in parse_readout(PLACE, value).readout.arms.values():
        for path in ("hard.acc.lower", "docs.acc.candidate", "unknowable.parent"):
            found = arm.resolve(path)
            assert found is None or isinstance(found, float)


def use_verdict(value: Any) -> None:
    parse_verdict(PLACE, value).verdict.resolve("hardtest.acc.lower")


def use_session(value: Any) -> None:
    session = parse_session(PLACE, value)
    headroom = session.account.headroom
    assert headroom is None or headroom <= session.authorization
    assert session.committed.usd >= 0


def reader_of(shape: Any) -> Callable[[Any], None]:
    def read(value: Any) -> None:
        record = parse_record(PLACE, value, shape)
        assert parse_record(PLACE, record.to_json(), shape) == record

    return read


KINDS: list[tuple[Callable[[Any], None], Any]] = [
    *((use_readout, value) for value in (SKILLS, DOCUMENTS, CURRENT)),
    *((use_verdict, value) for value in (OLD_DOCS, OLD_LOCKED, OLD_TESTS, CURRENT_VERDICT)),
    *((use_session, value) for value in (STATE, NIGHT)),
    (lambda value: session_of_budget(PLACE, "r70", value).account, {"hard_cap": 1.5, "metered_start": 2, "a_bound": 3}),
    (lambda value: parse_rows(PLACE, value), [row(), row(logits=[1.5, 2])]),
    (read_metered_cost, {"metered_cost": 1.5}),
    *((reader_of(shape), value) for shape, value in EXAMPLES),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    if not at:
        return by
    changed = copy.deepcopy(value)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = by
    return changed


@pytest.mark.parametrize(("read", "value"), KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_strange_value_anywhere_gives_a_record_or_a_reason(
    read: Callable[[Any], None], value: Any, data: st.DataObject
) -> None:
    at = data.draw(st.sampled_from(list(places(value))))
    try:
        read(replaced(value, at, data.draw(ANYTHING)))
    except DamagedFile as error:
        assert error.reason and "\n" not in str(error)
