"""One lister for everybody, with a clock that stands still."""

import asyncio
from datetime import UTC, datetime

import pytest

from kev.compute.errors import Throttled, Unavailable
from kev.compute.lister import MAX_AGE_S, MAX_REMEMBERED, MOST_BACKOFF_S, Directory, SharedLister
from kev.compute.protocol import Entry, EntryKind

ROOT = Directory("kev-runs", "/", False)


class StillClock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime(2027, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


class Server:
    """Answers in turn what it was given; a listing names how often it was asked."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self, directory: Directory) -> list[Entry]:
        self.asked += 1
        await self.gate.wait()
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        return [Entry(str(self.asked), EntryKind.FILE, 1, 1)]


async def test_many_views_at_once_cost_one_question() -> None:
    server = Server()
    server.gate.clear()
    lister = SharedLister(server.fetch, StillClock())
    views = [asyncio.create_task(lister.entries(ROOT)) for _ in range(20)]
    await asyncio.sleep(0)
    views[0].cancel()
    server.gate.set()
    answers = await asyncio.gather(*views[1:])
    assert server.asked == 1
    assert all(answer == answers[0] for answer in answers)


async def test_an_answer_serves_until_it_is_too_old() -> None:
    server, clock = Server(), StillClock()
    lister = SharedLister(server.fetch, clock)
    first = await lister.entries(ROOT)
    clock.seconds += MAX_AGE_S
    assert await lister.entries(ROOT) == first
    clock.seconds += 0.1
    assert await lister.entries(ROOT) != first
    assert server.asked == 2


async def test_what_a_view_does_to_its_answer_stays_with_it() -> None:
    lister = SharedLister(Server().fetch, StillClock())
    (await lister.entries(ROOT)).clear()
    assert len(await lister.entries(ROOT)) == 1


async def test_after_a_throttle_nobody_asks_until_the_wait_is_over() -> None:
    server, clock = Server(Throttled("slow", retry_after_s=30)), StillClock()
    lister = SharedLister(server.fetch, clock)
    with pytest.raises(Throttled):
        await lister.entries(ROOT)
    clock.seconds += 29
    with pytest.raises(Throttled) as raised:
        await lister.entries(Directory("kev-runs", "/other", False))
    assert raised.value.retry_after_s == pytest.approx(1)
    assert server.asked == 1
    clock.seconds += 1
    assert await lister.entries(ROOT)


async def test_without_a_hint_the_wait_doubles_up_to_a_bound_and_starts_anew_after_success() -> None:
    server, clock = Server(*[Throttled("slow") for _ in range(10)], None, Throttled("slow")), StillClock()
    lister = SharedLister(server.fetch, clock)
    waits = []
    for _ in range(10):
        with pytest.raises(Throttled) as raised:
            await lister.entries(ROOT)
        waits.append(raised.value.retry_after_s)
        clock.seconds += raised.value.retry_after_s or 0
    assert waits == [2, 4, 8, 16, 32, 64, *[MOST_BACKOFF_S] * 4]
    assert await lister.entries(ROOT)
    clock.seconds += MAX_AGE_S + 1
    with pytest.raises(Throttled) as raised:
        await lister.entries(ROOT)
    assert raised.value.retry_after_s == 2


async def test_an_outage_is_told_and_not_remembered() -> None:
    server = Server(Unavailable("down"))
    lister = SharedLister(server.fetch, StillClock())
    with pytest.raises(Unavailable):
        await lister.entries(ROOT)
    assert await lister.entries(ROOT)


async def test_what_is_remembered_is_bounded() -> None:
    lister = SharedLister(Server().fetch, StillClock())
    for number in range(MAX_REMEMBERED + 50):
        await lister.entries(Directory("kev-runs", str(number), False))
    assert len(lister._known) == MAX_REMEMBERED
