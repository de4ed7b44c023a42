"""Step metrics are read from whatever several unlocked writers and a dying machine left."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.records.step_metrics import MAX_LINE_BYTES, StepMetricsReader, read_step_metrics


def line(step: int, *, rank: int = 0, at: str | None = None) -> bytes:
    stamp = at or f"2027-01-01T00:{step % 60:02d}:00Z"
    return json.dumps({"rank": rank, "step": step, "steps": 90, "loss": 2.5, "at": stamp}).encode()


def test_each_kind_of_damage_is_named_and_nothing_is_drawn_twice() -> None:
    data = b"\n".join([
        line(1),
        line(1, rank=1),
        line(2) + line(2, rank=1),
        b"",
        line(3)[:9] + line(3, rank=1) + line(3)[9:],
        line(4)[7:],
        b"\0" * 40 + line(5),
        line(6),
        line(6),
        b'{"step": "seven"}',
        b'{"step": 8, "loss": NaN}',
        b"\xff\xfe\xfa",
        line(9) + line(10)[:20],
        b"[1, 2]",
        b"{" * 5000,
        b"",
    ])  # fmt: skip
    reading = read_step_metrics(data)
    assert [(point.rank, point.step) for point in reading.points] == [
        (0, 1), (1, 1), (0, 2), (1, 2), (0, 5), (0, 6), (0, 9)
    ]  # fmt: skip
    assert reading.repeats == [9]
    assert {damage.number: damage.recovered for damage in reading.damage} == {
        3: 2, 5: 0, 6: 0, 7: 1, 10: 0, 11: 0, 12: 0, 13: 1, 14: 0, 15: 0
    }  # fmt: skip
    assert all(damage.reason and "\n" not in damage.reason for damage in reading.damage)


def test_the_same_step_of_a_later_attempt_is_no_repeat() -> None:
    reading = read_step_metrics(line(7, at="2027-01-01T00:00:00Z") + b"\n" + line(7, at="2027-01-01T02:00:00Z"))
    assert len(reading.points) == 2 and not reading.repeats
    assert reading.points[1].ended == datetime(2027, 1, 1, 2, tzinfo=UTC)


def test_a_step_with_unix_seconds_is_a_moment_too() -> None:
    reading = read_step_metrics(b'{"step": 1, "loss": null, "t": 1800000000}\n')
    assert reading.points[0].ended == datetime(2027, 1, 15, 8, tzinfo=UTC) and reading.points[0].loss is None


def test_a_line_past_the_limit_is_named_without_being_kept() -> None:
    reader = StepMetricsReader()
    for _ in range(8):
        assert not reader.feed(b"x" * MAX_LINE_BYTES).damage
    reading = reader.feed(b"\n" + line(1) + b"\n")
    assert [damage.number for damage in reading.damage] == [1]
    assert [point.step for point in reading.points] == [1]


def test_a_long_watch_remembers_only_the_newest_records() -> None:
    reader = StepMetricsReader(remember=3)
    first = reader.feed(b"\n".join(line(step) for step in range(5)) + b"\n" + line(4) + b"\n")
    assert len(first.points) == 5 and first.repeats == [6]
    assert reader.feed(line(0) + b"\n").repeats == []


@given(st.lists(st.integers(0, 59), max_size=12), st.lists(st.integers(1, 40), max_size=40))
def test_reading_in_pieces_gives_what_reading_at_once_gives(steps: list[int], sizes: list[int]) -> None:
    data = b"\n".join(line(step) for step in steps)
    reader, points, repeats, position = StepMetricsReader(), [], [], 0
    for size in [*sizes, len(data)]:
        piece = reader.feed(data[position : position + size])
        points += piece.points
        repeats += piece.repeats
        position += size
    last = reader.finish()
    whole = read_step_metrics(data)
    assert points + last.points == whole.points
    assert repeats + last.repeats == whole.repeats
    assert len(whole.points) == len(set(steps))


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_raise_or_lose_count(data: bytes) -> None:
    reading = read_step_metrics(data)
    lines = sum(1 for piece in data.split(b"\n") if piece.strip())
    used = {damage.number for damage in reading.damage}
    assert len(used) + len(reading.repeats) + len(reading.points) >= lines


@given(st.integers(0, 400))
def test_a_file_torn_at_any_byte_keeps_every_whole_line_before_it(cut: int) -> None:
    data = b"\n".join(line(step) for step in range(5)) + b"\n"
    torn = data[:cut]
    reading = read_step_metrics(torn)
    assert len(reading.points) >= torn.count(b"\n")
    assert len(reading.damage) <= 1


def test_what_stands_behind_whole_records_on_their_line_is_named_as_well() -> None:
    reading = read_step_metrics(line(1) + line(2) + b'{"rank": 0, "ste\n' + line(3) + line(4) + b"\n")
    first, second = reading.damage
    assert (first.reason, first.recovered) == ("2 records on one line, then 16 characters that are none", 2)
    assert (second.reason, second.recovered) == ("2 records on one line", 2)


@pytest.mark.parametrize("step", [-1, 2**63, 10**15])
def test_a_step_that_no_run_can_have_is_damage(step: int) -> None:
    reading = read_step_metrics(b'{"step": %d, "at": "2027-01-01T00:00:00Z"}\n' % step)
    assert reading.points == [] and reading.damage[0].reason.startswith("step: ")


@pytest.mark.parametrize(("when", "reason"), [
    ({}, "has no at or t"),
    ({"at": "2027-10-31T02:30:00"}, "at: has no time zone"),
    ({"at": "yesterday"}, "at: not an ISO 8601 time"),
    ({"t": -1}, "t: out of the range"),
])  # fmt: skip
def test_a_step_that_says_no_moment_is_named_with_the_reason(when: dict[str, object], reason: str) -> None:
    reading = read_step_metrics(json.dumps({"step": 5, "loss": 1.5, **when}).encode() + b"\n")
    assert reading.points == [] and reading.damage[0].reason.startswith(f"step 5: {reason}")
