"""One lister for everybody: listings are the requests that Modal rations first.

Every view that needs a directory asks here. Requests for the same one share a single question, an answer serves for
some seconds, and after a throttle nobody asks at all until the wait is over.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kev.clock import Clock
from kev.compute.errors import Throttled, Unavailable
from kev.compute.protocol import Entry

MAX_AGE_S = 10.0
FIRST_BACKOFF_S = 2.0
MOST_BACKOFF_S = 120.0
MAX_REMEMBERED = 200
"""Directories; the one that was asked for longest ago is forgotten."""


@dataclass(frozen=True, slots=True)
class Directory:
    volume: str
    path: str
    recursive: bool


@dataclass(frozen=True, slots=True)
class _Listing:
    entries: list[Entry]
    at: float


class SharedLister:
    """Answers from memory while it may, and asks `fetch` otherwise."""

    def __init__(self, fetch: Callable[[Directory], Awaitable[list[Entry]]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._known: dict[Directory, _Listing] = {}
        self._under_way: dict[Directory, asyncio.Task[list[Entry]]] = {}
        self._not_before = 0.0
        self._backoff = 0.0

    async def entries(self, directory: Directory, *, max_age_s: float = MAX_AGE_S) -> list[Entry]:
        """The entries, at most `max_age_s` old. Raises Throttled without asking while a wait is on."""
        known = self._known.get(directory)
        if known is not None and self._clock.monotonic() - known.at <= max_age_s:
            return list(known.entries)
        task = self._under_way.get(directory)
        if task is None:
            self._check_wait(directory)
            task = asyncio.create_task(self._ask(directory))
            self._under_way[directory] = task
            task.add_done_callback(lambda done: self._done(directory, done))
        # Shielded: one view that loses interest must not take the answer from the others.
        return list(await asyncio.shield(task))

    async def list_patiently(self, directory: Directory, *, patience_s: float) -> list[Entry]:
        """A fresh listing, waiting out throttles and outages for up to `patience_s`."""
        end = self._clock.monotonic() + patience_s
        while True:
            try:
                return await self.entries(directory, max_age_s=0)
            except (Throttled, Unavailable) as error:
                pause = (error.retry_after_s if isinstance(error, Throttled) else None) or FIRST_BACKOFF_S
                if self._clock.monotonic() + pause > end:
                    raise
                await asyncio.sleep(pause)

    def _check_wait(self, directory: Directory) -> None:
        left = self._not_before - self._clock.monotonic()
        if left > 0:
            raise Throttled(
                f"list {directory.volume}:{directory.path}: asked too often; asking again in {left:.0f} s",
                retry_after_s=left,
            )

    async def _ask(self, directory: Directory) -> list[Entry]:
        try:
            entries = await self._fetch(directory)
        except Throttled as error:
            self._backoff = min(MOST_BACKOFF_S, max(FIRST_BACKOFF_S, self._backoff * 2))
            wait = error.retry_after_s if error.retry_after_s is not None else self._backoff
            self._not_before = self._clock.monotonic() + wait
            raise Throttled(str(error), retry_after_s=wait) from error
        self._backoff = 0.0
        self._known.pop(directory, None)
        self._known[directory] = _Listing(entries, self._clock.monotonic())
        while len(self._known) > MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        return entries

    def _done(self, directory: Directory, task: "asyncio.Task[list[Entry]]") -> None:
        del self._under_way[directory]
        if not task.cancelled():
            task.exception()  # every waiter may have left
