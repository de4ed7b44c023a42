"""Logs through the real client: attribution, following, searching, lag and retention."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import modal
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.emulator.dispatch import Caller
from kev.emulator.entities import App, Task
from kev.emulator.journal import Journal
from kev.emulator.logs import AppLog, LogBook, Logs
from kev.emulator.plan import LogPlan
from kev.emulator.process import Output
from kev.emulator.store import Store
from kev.emulator.supervisor import whole_characters
from kev.emulator.wire import pb

from .conftest import Begin, Night, Pipe


class MovableClock:
    """The system's clock, moved by hand."""

    def __init__(self) -> None:
        self.offset = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def monotonic(self) -> float:
        return self.offset.total_seconds()


async def tail(call: modal.FunctionCall, count: int = 100) -> list[str]:
    return [entry.message async for entry in call.logs.tail.aio(count)]


async def test_each_line_belongs_to_the_call_that_printed_it(night: Night) -> None:
    first = await night.spawn("speak", "one", "[red]two[/]", max_containers=1)
    await first.get.aio(timeout=60)
    second = await night.spawn("speak", "three", max_containers=1)
    await second.get.aio(timeout=60)
    await night.printed("three")

    assert await tail(first) == ["one\n", "[red]two[/]\n"]
    assert await tail(second) == ["three\n"]


async def test_a_follower_sees_lines_as_they_are_printed_and_the_ids_they_belong_to(night: Night, pipe: Pipe) -> None:
    call = await night.spawn("hold", pipe.path)
    app = await modal.App.lookup.aio("night", client=night.client)
    async for entry in app.logs.stream.aio(timeout=20):
        if entry.message == "holding\n":
            break

    assert {each.partition("-")[0] for each in entry.context_ids} >= {"in", "ta"}
    pipe.release()
    assert await call.get.aio(timeout=60) == "released"


async def test_logs_can_be_searched_by_text_source_and_time(night: Night) -> None:
    call = await night.spawn("speak", "loss 0.5", "loss 0.4", "saved")
    await call.get.aio(timeout=60)
    await night.printed("saved")
    now = datetime.now(UTC)

    async def fetch(**options: object) -> list[str]:
        return [entry.message async for entry in call.logs.fetch.aio(**options)]

    hour = {"since": now - timedelta(hours=1), "until": now + timedelta(hours=1)}
    assert await fetch(**hour, search_text="loss") == ["loss 0.5\n", "loss 0.4\n"]
    assert await fetch(**hour, source="stderr") == []
    assert await fetch(since=now - timedelta(hours=2), until=now - timedelta(hours=1)) == []


async def test_output_that_is_not_utf8_or_never_ends_its_line_gets_through(night: Night) -> None:
    call = await night.spawn("speak", "\x1b[2Jcleared", "x" * 200_000)
    await call.get.aio(timeout=60)
    await night.printed("x\n")

    assert "".join(await tail(call)) == "\x1b[2Jcleared\n" + "x" * 200_000 + "\n"


async def test_a_lagging_log_shows_lines_only_when_they_are_old_enough(begin: Begin) -> None:
    clock = MovableClock()
    night = await begin({"logs": {"lag_s": 60}}, clock=clock)
    call = await night.spawn("speak", "late")
    await call.get.aio(timeout=60)
    await night.printed("late")

    assert await tail(call) == []
    clock.offset = timedelta(seconds=61)
    assert await tail(call) == ["late\n"]


async def test_a_log_forgets_what_is_older_than_its_retention(begin: Begin) -> None:
    clock = MovableClock()
    night = await begin({"logs": {"retention_s": 3600}}, clock=clock)
    call = await night.spawn("speak", "old")
    await call.get.aio(timeout=60)
    await night.printed("old")

    assert await tail(call) == ["old\n"]
    clock.offset = timedelta(hours=2)
    assert await tail(call) == []


async def test_the_platforms_own_lines_say_why_a_container_ended(night: Night, pipe: Pipe) -> None:
    call = await night.spawn("hold", pipe.path)
    await night.printed("holding")
    await call.cancel.aio(terminate_containers=True)
    await night.no_containers()

    assert [line.text.split(" ended: ")[1] for line in night.plane.book[night.app_id].lines if line.fd == 3] == [
        "cancelled\n"
    ]


def log_of(*times: float) -> AppLog:
    log, task = AppLog(), Task(id="ta-1", app_id="ap-1", function_id="fu-1", enqueued=0)
    for at in times:
        log.add(Output(at, 1, f"{at}\n"), task, "fc-1", "in-1")
    return log


def test_a_follower_goes_on_where_it_was_although_a_restart_numbered_the_lines_anew() -> None:
    before, after = log_of(1.0, 2.0, 3.0, 4.0), log_of(2.0, 3.0, 4.0)

    last_seen = before.lines[1].entry_id
    assert [line.at for line in after.after(after.resume(last_seen))] == [3.0, 4.0]
    assert [line.at for line in before.after(before.resume(last_seen))] == [3.0, 4.0]


def test_no_line_of_the_moment_that_was_seen_last_is_lost_or_said_twice_after_a_restart() -> None:
    before, after = log_of(1.0, 2.0, 2.0, 2.0, 2.0004, 3.0), log_of(2.0, 2.0, 2.0, 2.0004, 3.0)

    for seen in range(1, 6):
        left = after.after(after.resume(before.lines[seen].entry_id))
        assert [line.at for line in left] == [line.at for line in before.lines[seen + 1 :]]


@pytest.mark.parametrize("entry_id", ["", "0-0"])
def test_a_new_follower_begins_with_the_first_line(entry_id: str) -> None:
    log = log_of(1.0, 2.0)

    assert len(log.after(log.resume(entry_id))) == 2


def test_a_long_log_keeps_its_newest_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kev.emulator.logs.MAX_LINES", 100)
    log = log_of(*range(1000))

    assert log.lines[-1].at == 999 and 50 <= len(log.lines) <= 100
    assert [line.at for line in log.after(log.lines[-3].number)] == [998, 999]


class StoppedClock:
    """Shows what it was set to."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


async def test_a_follower_misses_no_line_that_a_lag_hides_longer_than_a_later_one(tmp_path: Path) -> None:
    store, book, clock = Store(Journal(tmp_path / "journal")), LogBook(AppLog), StoppedClock(12.5)
    store.save(App(id="ap-1", name="night", environment="main", state=pb.APP_STATE_DEPLOYED, created=0))
    book["ap-1"] = log_of(1.0, 3.0, 2.0, 4.0)
    logs = Logs(store, book, clock, LogPlan(lag_s=10))

    seen: list[float] = []
    last = ""
    for clock.seconds in (12.5, 13.5, 14.5):
        request = pb.AppGetLogsRequest(app_id="ap-1", last_entry_id=last, timeout=0)
        async for part in logs.app_get_logs(request, Caller()):
            seen.append(part.items[0].timestamp)
            last = part.entry_id
    assert seen == [1.0, 3.0, 2.0, 4.0]


@given(st.text(max_size=20) | st.text("aé€😀", max_size=20), st.integers(0, 80))
def test_output_that_is_cut_is_cut_between_characters(text: str, at: int) -> None:
    data = text.encode()[:at]
    whole = whole_characters(data)

    assert data[:whole].decode() == text[: len(data[:whole].decode())]
    assert len(data) - whole < 4


@given(st.binary(min_size=4))
def test_output_that_is_no_text_is_not_held_back(data: bytes) -> None:
    assert 0 <= len(data) - whole_characters(data) < 4


async def test_many_followers_cost_one_request_each(night: Night, pipe: Pipe) -> None:
    call = await night.spawn("hold", pipe.path)
    app = await modal.App.lookup.aio("night", client=night.client)

    async def first() -> str:
        return await anext(entry.message async for entry in app.logs.stream.aio(timeout=20))

    before = night.plane.dispatcher.counts["AppGetLogs"]
    await night.printed("holding")
    assert await asyncio.gather(*(first() for _ in range(5))) == ["holding\n"] * 5
    assert night.plane.dispatcher.counts["AppGetLogs"] - before == 5
    pipe.release()
    await call.get.aio(timeout=60)
