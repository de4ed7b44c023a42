"""A session's money is the same whichever file it comes from, and damage never gives headroom."""

import json
import threading
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_examples import NIGHT, STATE

from kev import files
from kev.errors import DamagedFile, NotFound, Refused
from kev.records.session import SessionState
from kev.session import (
    append_event,
    create_state,
    events_path,
    is_settled,
    parse_events,
    parse_session,
    read_events,
    read_session,
    session_of_budget,
    update_state,
    utc_text,
    with_reading,
)

PLACE = Path("runs/night8-state.json")


@pytest.mark.parametrize("key", ["authorization_usd", "baseline_usd"])
def test_an_amount_that_a_state_has_twice_authorizes_nothing(tmp_path: Path, key: str) -> None:
    path = tmp_path / "night8-state.json"
    text = json.dumps(STATE)[:-1] + f', "{key}": 4000}}'
    path.write_text(text)
    with pytest.raises(DamagedFile, match=f"'{key}' is given twice"):
        read_session(path)
    with pytest.raises(DamagedFile, match=f"'{key}' is given twice"):
        update_state(path, lambda state: state)
    assert path.read_text() == text


def test_a_number_of_any_size_that_someone_keeps_in_a_state_survives_a_reading_of_the_meter(tmp_path: Path) -> None:
    path, moment = tmp_path / "night8-state.json", datetime(2026, 11, 2, tzinfo=UTC)
    kept = {"ticket": 2**64 + 1, "more": [-(2**63) - 1, {"of": 10**40}]}
    path.write_text(json.dumps(STATE | kept))
    update_state(path, lambda state: with_reading(state, moment, Decimal("140.125"), "meter"))
    after = json.loads(path.read_text())
    assert {key: after[key] for key in kept} == kept


def test_our_own_state_gives_the_whole_account() -> None:
    session = parse_session(PLACE, STATE)
    assert session.spent is not None and session.spent.usd == Decimal("39.75")
    assert [reading.metered for reading in session.readings] == [Decimal(110), Decimal("130.25")]
    assert session.metered == Decimal("130.25")
    assert session.committed.usd == Decimal("24.75")
    assert session.reserve == Decimal(40)
    assert session.account.headroom == Decimal("295.5")
    assert (session.name, session.gateway_spent, session.simulated) == ("march", Decimal("0.125"), False)


def test_the_public_state_gives_the_same_kind_of_account() -> None:
    session = parse_session(PLACE, NIGHT)
    assert session.name == "night8"
    assert session.spent is not None and session.spent.usd == Decimal(20)
    assert (session.committed.usd, session.account.headroom) == (Decimal("12.5"), Decimal("147.5"))
    assert [(study.name, study.settled) for study in session.studies] == [("r80-a", True), ("r80-b", False)]
    assert (session.gateway_authorization, session.gateway_spent) == (Decimal(5), Decimal("0.75"))
    assert session.decisions == ("merge?",)


def test_gateway_estimates_without_a_total_are_added_up() -> None:
    estimates = {"runs/a": 0.25, "runs/b": 0.5}
    assert parse_session(PLACE, NIGHT | {"ai_gateway_estimated_usd": estimates}).gateway_spent == Decimal("0.75")
    assert parse_session(PLACE, NIGHT | {"ai_gateway_estimated_usd": {}}).gateway_spent is None


def test_whatever_is_listed_as_running_counts_even_where_its_status_disagrees() -> None:
    session = parse_session(PLACE, NIGHT | {"running_bounds_usd": {"r80-a": 3, "reads of r80": 4}})
    # r80-a by the list, the reads by the list, r80-b by its status.
    assert session.committed.usd == Decimal("3") + Decimal("4") + Decimal("12.5")


def test_a_spec_budget_stands_in_where_there_is_no_state() -> None:
    block = {"hard_cap": 60, "metered_start": 7.25, "cycle": "2027-03", "training_bound": 20.5, "admission": "text",
             "failed_start_reserve": 3}  # fmt: skip
    session = session_of_budget(Path("r90.json"), "r90", block)
    assert (session.authorization, session.reserve, session.baseline) == (Decimal(60), Decimal(6), Decimal("7.25"))
    assert session.planned == {"training_bound": Decimal("20.5")}
    assert session.spent is None and session.account.headroom is None and session.committed.usd == 0
    with pytest.raises(Refused, match="spend is unknown"):
        session.account.check_launch("study r90", Decimal(1), reading_age_s=0)


@pytest.mark.parametrize(
    ("block", "named"),
    [
        (None, "null"),
        ([], "a list"),
        ({}, "hard_cap"),
        ({"hard_cap": "60"}, "hard_cap"),
        ({"hard_cap": True}, "hard_cap"),
        ({"hard_cap": -60}, "hard_cap"),
    ],
)
def test_a_spec_budget_that_cannot_be_believed_is_damaged(block: Any, named: str) -> None:
    with pytest.raises(DamagedFile, match=f"r90.json: budget: .*{named}"):
        session_of_budget(Path("r90.json"), "r90", block)


def test_a_fallen_meter_carries_the_spend_over() -> None:
    readings = [{"at": f"2027-04-01T0{hour}:00Z", "metered_usd": usd} for hour, usd in enumerate([100.5, 0, 2.5])]
    spent = parse_session(PLACE, STATE | {"readings": readings}).spent
    assert spent is not None and (spent.usd, spent.carried, spent.resets) == (Decimal("12.5"), Decimal(10), 1)


def test_unsettled_work_without_a_bound_makes_the_committed_sum_incomplete() -> None:
    session = parse_session(PLACE, STATE | {"studies": {"r70-2b": {"status": "running"}}})
    assert not session.committed.complete


@pytest.mark.parametrize(("status", "settled"), [
    ("done, pulled, read", True), ("Done", True), ("failed at 3/9", True), ("cancelled", True), ("running", False),
    ("", False), ("not done", False), ("queued", False), ("undone", False), ("timeout", False), ("42", False),
])  # fmt: skip
def test_a_status_in_doubt_still_counts(status: str, settled: bool) -> None:
    assert is_settled(status) is settled


@pytest.mark.parametrize(
    "data", [b"", b" \n", b"{}", b"[]", b"null", b'{"session": "a"}', b'{"session": "a", ', b"\0" * 64]
)
def test_an_empty_or_damaged_state_is_never_a_fresh_session(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "march-state.json"
    path.write_bytes(data)
    with pytest.raises(DamagedFile):
        read_session(path)
    with pytest.raises(Refused, match="already"):
        create_state(path, SessionState.model_validate(STATE))
    with pytest.raises(DamagedFile):
        update_state(path, lambda state: state)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (STATE | {"baseline_usd": "90.5"}, "baseline_usd"),
        (STATE | {"readings": [{"at": "2027-03-02 03:00", "metered_usd": 1}]}, r"readings\.0\.at.*no time zone"),
        (
            STATE | {"readings": [{"at": "2027-03-02T03:00Z", "metered_usd": -1}]},
            r"readings\.0\.metered_usd.*from zero up",
        ),
        (STATE | {"readings": [{"at": "2027-03-02T03:00Z", "metered_usd": None}]}, r"readings\.0\.metered_usd"),
        (STATE | {"studies": {"a": {"bound_usd": -9, "status": "running"}}}, r"studies\.a\.bound_usd"),
        (STATE | {"studies": {"a": {"bound_usd": 1}}}, r"studies\.a\.status"),
        (NIGHT | {"modal_metered_usd": {"around three": 5}}, "modal_metered_usd.around three"),
        (NIGHT | {"modal_metered_usd": {"baseline_a": 5, "baseline_b": 6}}, "more than one baseline"),
        (NIGHT | {"authorization": {"modal_usd": None}}, "authorization.modal_usd"),
        ({"mood": "good"}, "neither a session nor a night"),
    ],
)
def test_a_state_with_a_figure_that_cannot_be_believed_names_it(value: Any, named: str) -> None:
    with pytest.raises(DamagedFile, match=named):
        parse_session(PLACE, value)


def test_a_public_state_without_a_baseline_leaves_the_spend_unknown() -> None:
    session = parse_session(PLACE, NIGHT | {"modal_metered_usd": {"2027-03-02T01:00Z": 60.5}})
    assert session.spent is None and session.account.headroom is None


def test_a_state_is_created_once_and_updated_whole(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "march-state.json"
    create_state(path, SessionState.model_validate(STATE | {"from_the_future": [1]}))
    with pytest.raises(Refused, match="already"):
        create_state(path, SessionState.model_validate(STATE))
    moment = datetime(2027, 3, 2, 6, 0, tzinfo=timezone(timedelta(hours=2)))
    update_state(path, lambda state: with_reading(state, moment, Decimal("140.125"), "meter"))
    kept = json.loads(path.read_bytes())
    assert kept["readings"][-1] == {"at": "2027-03-02T04:00:00.000Z", "metered_usd": 140.125, "source": "meter"}
    assert kept["from_the_future"] == [1]
    assert read_session(path).metered == Decimal("140.125")


def test_two_updates_at_once_lose_neither(tmp_path: Path) -> None:
    path = tmp_path / "march-state.json"
    create_state(path, SessionState.model_validate(STATE | {"readings": []}))
    start = threading.Barrier(4)

    def add(worker: int) -> None:
        start.wait()
        for turn in range(5):
            moment = datetime(2027, 3, 2, worker, turn, tzinfo=UTC)
            update_state(path, partial(with_reading, at=moment, metered=Decimal(100 + worker), source="meter"))

    threads = [threading.Thread(target=add, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_session(path).readings) == 20


def test_the_public_state_is_read_and_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "night8-state.json"
    files.write_atomic(path, files.dump_json(NIGHT))
    before = path.read_bytes()
    with pytest.raises(Refused, match="never changed"):
        update_state(path, lambda state: state)
    assert path.read_bytes() == before


def test_events_come_back_in_order_with_a_torn_line_named(tmp_path: Path) -> None:
    path = events_path(tmp_path / "runs" / "march-state.json")
    assert path.name == "march-events.jsonl"
    at = datetime(2027, 3, 2, 4, 5, 6, 789000, tzinfo=UTC)
    append_event(path, at, "launch", "r70-2b launched\u2028on H200", subject="r70-2b", who="watcher")
    with path.open("ab") as stream:
        stream.write(b'{"at": "2027-03-02T04:06')
    append_event(path, at + timedelta(minutes=2), "reading", "meter at $130.25", severity="warning")
    journal = read_events(path)
    assert [(event.kind, event.severity, event.subject, event.who) for event in journal.events] == [
        ("launch", "info", "r70-2b", "watcher"), ("reading", "warning", "", None)
    ]  # fmt: skip
    assert journal.events[0].text == "r70-2b launched\u2028on H200"
    assert journal.events[0].at == "2027-03-02T04:05:06.789Z" and journal.events[0].happened == at
    assert [line.number for line in journal.damage] == [2]
    with pytest.raises(NotFound):
        read_events(tmp_path / "none-events.jsonl")


def test_lines_that_are_no_events_are_named_and_the_rest_is_read() -> None:
    data = (
        b'[]\n{"kind": "a", "text": "b"}\n{"at": 5, "kind": "a", "text": "b"}\n\n{"at": "x", "kind": "a", "text": "b"}'
    )
    journal = parse_events(data, first=7)
    assert [line.number for line in journal.damage] == [7, 8, 9]
    assert [event.happened for event in journal.events] == [None]


@given(st.binary(max_size=300))
def test_no_bytes_make_the_journal_raise(data: bytes) -> None:
    journal = parse_events(data)
    lines = [line for line in data.removeprefix(files.UTF8_BOM).split(b"\n") if line.strip()]
    assert len(journal.events) + len(journal.damage) == len(lines)


def test_a_time_without_a_zone_is_not_written_down() -> None:
    with pytest.raises(ValueError, match="zone"):
        utc_text(datetime(2027, 3, 2))  # noqa: DTZ001
