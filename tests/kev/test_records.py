"""Every record keeps what it reads, names what it cannot believe, and says what its figures mean."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_examples import EXAMPLES, SPAWN, row

from kev import files
from kev.errors import DamagedFile, Refused
from kev.records.autoresearch import SessionRound
from kev.records.base import Record, parse_record, read_record, write_record
from kev.records.billing import ScopedBilling, read_metered_cost
from kev.records.instant import read_instant
from kev.records.lease import Lease
from kev.records.resume import ResumePoint
from kev.records.rows import Row, parse_rows
from kev.records.session import SessionState
from kev.records.spawn import SpawnRecord
from kev.records.watch import WatchRecord

PLACE = Path("runs/example.json")


def identical(left: Any, right: Any) -> bool:
    """Equal, and of the same JSON types throughout: 1 is not 1.0 and not true."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(identical(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(identical, left, right))
    return bool(left == right)


def sorted_deeply(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True))


@pytest.mark.parametrize(("shape", "value"), EXAMPLES, ids=[shape.__name__ for shape, _ in EXAMPLES])
def test_a_record_written_back_is_what_was_read(shape: type[Record], value: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    files.write_atomic(path, files.dump_json(value))
    write_record(path, read_record(path, shape))
    assert identical(sorted_deeply(files.read_json(path)), sorted_deeply(value))


def test_an_unchanged_file_is_parsed_once_and_a_changed_one_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.spawn.json"
    write_record(path, parse_record(PLACE, SPAWN, SpawnRecord))
    first = read_record(path, SpawnRecord)
    assert read_record(path, SpawnRecord) is first
    write_record(path, parse_record(PLACE, {**SPAWN, "gpu": "H200:8"}, SpawnRecord))
    assert read_record(path, SpawnRecord).gpu == "H200:8"
    path.write_bytes(b"{}")
    for _ in range(2):
        with pytest.raises(DamagedFile, match="field required"):
            read_record(path, SpawnRecord)


@pytest.mark.parametrize(("shape", "value"), EXAMPLES, ids=[shape.__name__ for shape, _ in EXAMPLES])
def test_unknown_keys_survive_at_the_top(shape: type[Record], value: dict[str, Any]) -> None:
    strange = {**value, "from_the_future": {"deep": [1, None, "\u2028"]}}
    assert parse_record(PLACE, strange, shape).to_json()["from_the_future"] == strange["from_the_future"]


@pytest.mark.parametrize(("shape", "value"), EXAMPLES, ids=[shape.__name__ for shape, _ in EXAMPLES])
def test_any_first_level_key_of_a_wrong_type_is_named_or_kept(shape: type[Record], value: dict[str, Any]) -> None:
    named = 0
    for key in value:
        wrong = {**value, key: {"neither": 1}} if not isinstance(value[key], dict) else {**value, key: "text"}
        try:
            parse_record(PLACE, wrong, shape)
        except DamagedFile as error:
            named += 1
            assert key in error.reason and "\n" not in str(error)
    assert named > 0


def test_a_record_too_deep_to_be_written_is_refused_before_anything_is_lost(tmp_path: Path) -> None:
    path, deep = tmp_path / "record.json", b"[" * 900 + b"]" * 900
    path.write_bytes(b'{"dir": "step-1", "step": 1, "from_the_future": ' + deep + b"}")
    before = path.read_bytes()
    with pytest.raises(Refused, match="ResumePoint: not written back"):
        write_record(path, read_record(path, ResumePoint))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"calls": None}, "calls"),
        ({"calls": ["fc-1"]}, "calls"),
        ({"bound_usd": "18.8"}, "bound_usd"),
        ({"bound_usd": True}, "bound_usd"),
        ({"bound_usd": -0.01}, "bound_usd"),
        ({"timeout": "10800"}, "timeout"),
        ({"full_ft": 1}, "full_ft"),
        ({"attempts": {"trial-0": "fc-01"}}, "attempts.trial-0"),
        ({"attempts": {"trial-0": [{"nonce": "a", "at": 1.8e12}]}}, "attempts.trial-0.0.at"),
        ({"attempts": {"trial-0": [{"nonce": "a", "at": -5}]}}, "attempts.trial-0.0.at"),
        ({"modal_retries": "0"}, "modal_retries"),
    ],
)
def test_a_wrongly_typed_spawn_record_is_damaged_and_names_the_key(change: dict[str, Any], named: str) -> None:
    with pytest.raises(DamagedFile, match=named):
        parse_record(PLACE, SPAWN | change, SpawnRecord)


@pytest.mark.parametrize("value", [{}, None, [], 3, "text", {"name": "a"}, {"calls": {"trial-0": None}}])
def test_what_is_no_spawn_record_is_damaged_rather_than_a_study_never_launched(value: Any) -> None:
    with pytest.raises(DamagedFile):
        parse_record(PLACE, value, SpawnRecord)


def test_attempts_are_counted_from_the_ledger_and_abandoned_ones_count() -> None:
    record = parse_record(PLACE, SPAWN, SpawnRecord)
    assert (record.attempts_used("trial-0"), record.attempts_used("trial-1"), record.attempts_allowed()) == (2, 1, 3)
    current, other = record.current_attempt("trial-0"), record.current_attempt("trial-1")
    assert current is not None and not current.pending and current.call == "fc-1"
    assert other is not None and other.pending
    assert other.started == datetime(2027, 1, 15, 8, 1, tzinfo=UTC)


def test_a_lora_trial_has_one_attempt_and_a_trial_without_entries_has_used_it() -> None:
    record = parse_record(PLACE, SPAWN | {"full_ft": False, "attempts": {}}, SpawnRecord)
    assert (record.attempts_allowed(), record.attempts_used("trial-0")) == (1, 1)
    assert record.current_attempt("trial-0") is None


@pytest.mark.parametrize("retries", [{}, {"modal_retries": 2}])
def test_a_record_without_a_ledger_has_all_its_attempts_used(retries: dict[str, int]) -> None:
    value = {"name": "old", "calls": {"trial-0": "fc-9"}, "full_ft": True, **retries}
    record = parse_record(PLACE, value, SpawnRecord)
    assert not record.has_ledger
    assert record.attempts_used("trial-0") == record.attempts_allowed() == 3


@pytest.mark.parametrize(
    ("state", "settled"),
    [
        ({"status": "running"}, False),
        ({"status": "done"}, False),
        ({"status": "done", "launched": True}, True),
        ({"status": "done", "unmapped": True}, True),
        ({"status": "failed"}, True),
        ({"status": "timeout"}, False),
    ],
)
def test_a_trial_is_settled_when_the_watcher_has_nothing_left_to_do(state: dict[str, Any], settled: bool) -> None:
    record = parse_record(PLACE, {"calls": {"trial-0": state}}, WatchRecord)
    assert record.calls["trial-0"].settled is settled


def test_a_lease_whose_heartbeat_lies_before_its_start_says_that_its_clock_went_back() -> None:
    lease = {"nonce": "a", "started": 1800000000, "heartbeat": 1799996400}
    assert parse_record(PLACE, lease, Lease).clock_went_back
    assert not parse_record(PLACE, lease | {"heartbeat": 1800000060}, Lease).clock_went_back


@given(st.decimals(min_value=0, max_value=10**7, places=8))
def test_money_goes_through_a_file_unchanged(amount: Decimal) -> None:
    value = {"session": "s", "authorization_usd": float(amount), "baseline_usd": 0}
    record = parse_record(PLACE, json.loads(files.dump_json(value)), SessionState)
    # A double holds 8 decimals of ten million exactly enough to give the same text back.
    assert record.authorization_usd == amount
    assert json.loads(files.dump_json(record.to_json())) == value


@pytest.mark.parametrize(
    ("answer", "usd"),
    [
        ({"metered_cost": 31.25}, "31.25"),
        ({"metered_cost": 0}, "0"),
        ({"metered_cost": 7, "currency": "USD"}, "7"),
        ({"metered_cost": None}, None),
        ({}, None),
        ({"metered_cost": "NaN"}, None),
        ({"metered_cost": float("nan")}, None),
        ({"metered_cost": float("inf")}, None),
        ({"metered_cost": "31.25"}, None),
        ({"metered_cost": -0.01}, None),
        ({"metered_cost": True}, None),
        ({"metered_cost": 10**400}, None),
        ({"metered_cost": {"usd": 3}}, None),
        ([], None),
        (None, None),
        ("31.25", None),
    ],
)
def test_only_a_finite_number_from_zero_up_is_a_billing_reading(answer: object, usd: str | None) -> None:
    reading = read_metered_cost(answer)
    assert reading.usd == (None if usd is None else Decimal(usd))
    assert (reading.problem is None) is (usd is not None)


def test_billing_rows_add_up_exactly_and_refuse_text_that_is_no_amount() -> None:
    value = next(value for shape, value in EXAMPLES if shape is ScopedBilling)
    row = value["response"][0]
    twice = parse_record(PLACE, {**value, "response": [row, {**row, "cost": "0.10000001"}]}, ScopedBilling)
    assert twice.sum_of_rows() == Decimal("1.60000001")
    for text in ("", "free", "NaN", "1,50", 1.5):
        with pytest.raises(DamagedFile, match=r"response\.0\.cost"):
            parse_record(PLACE, {**value, "response": [{**row, "cost": text}]}, ScopedBilling)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2027-03-28T01:30Z", (2027, 3, 28, 1, 30, 0)),
        ("2027-03-28T03:30+02:00", (2027, 3, 28, 1, 30, 0)),
        ("2027-03-27T20:30:15.5-05:00", (2027, 3, 28, 1, 30, 15)),
        ("2027-03-28 01:30:00+00:00", (2027, 3, 28, 1, 30, 0)),
        ("2016-12-31T23:59:60Z", (2017, 1, 1, 0, 0, 0)),
        ("2016-12-31T18:59:60-05:00", (2017, 1, 1, 0, 0, 0)),
        (1806197400, (2027, 3, 28, 1, 30, 0)),
        (1806197400.75, (2027, 3, 28, 1, 30, 0)),
    ],
)
def test_a_zoned_time_is_a_moment_in_utc(written: object, moment: tuple[int, ...]) -> None:
    instant = read_instant(written)
    assert instant.problem is None
    assert instant.at is not None and instant.at.replace(microsecond=0) == datetime(*moment, tzinfo=UTC)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("2027-10-31 02:30", "no time zone"),
        ("2027-10-31", "no time zone"),
        ("yesterday", "not an ISO 8601 time"),
        ("2027-10-31T05:60Z", "not an ISO 8601 time"),
        ("9999-12-31T23:59:60Z", "not an ISO 8601 time"),
        ("0001-01-01T00:00+10:00", "not an ISO 8601 time"),
        ("", "not an ISO 8601 time"),
        (-1, "range"),
        (1.8e12, "range"),
        (None, "not a time"),
        (True, "not a time"),
        ([2027], "not a time"),
    ],
)
def test_what_is_no_moment_is_kept_with_the_reason_and_never_guessed(written: object, reason: str) -> None:
    instant = read_instant(written)
    assert instant.at is None and instant.problem is not None and reason in instant.problem
    assert instant.text == str(written)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers())))
def test_reading_a_time_never_raises(value: object) -> None:
    instant = read_instant(value)
    assert (instant.at is None) is (instant.problem is not None)


def test_rounds_of_a_session_keep_the_spelling_of_their_time() -> None:
    line = {"round": 1, "spec": "s", "spend_before": 0.0, "budgets": 4, "at": "2027-10-31 02:30"}
    record = parse_record(PLACE, line, SessionRound)
    assert record.completed is None and record.instant.problem == "has no time zone"
    assert record.to_json() == line


def test_a_bad_row_is_named_by_its_place_and_key() -> None:
    assert [made.to_json() for made in parse_rows(PLACE, [row(), row(id="b")])] == [row(), row(id="b")]
    with pytest.raises(DamagedFile, match="row 2: label"):
        parse_rows(PLACE, [row(), row(label="1")])
    with pytest.raises(DamagedFile, match="no list of rows"):
        parse_rows(PLACE, {"rows": []})
    assert parse_record(PLACE, row(logits=[0, 1.5]), Row).logits == [0, 1.5]
