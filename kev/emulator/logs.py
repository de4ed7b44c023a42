"""Logs: what containers print and what the platform says about them, streamed and searched."""

import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import takewhile
from math import inf
from typing import Any

from kev.clock import Clock
from kev.emulator.dispatch import Caller
from kev.emulator.entities import App, Task
from kev.emulator.plan import LogPlan
from kev.emulator.process import Output
from kev.emulator.store import Store
from kev.emulator.waiting import Bell
from kev.emulator.wire import not_found, pb, seconds_of, timestamp

PLATFORM = 3
"""The file descriptor under which the platform speaks."""

MAX_LINES = 200_000
"""Of an app; older ones are forgotten here, where the provider forgets by age alone."""

FETCH_LIMIT = 20_000
ENTRY_ID = re.compile(r"(?P<moment>\d+)-(?P<number>\d+)-(?P<place>\d+-.+)")


@dataclass(frozen=True, slots=True)
class Line:
    """One piece of log: its place in the app's log, when and where it came from."""

    number: int
    at: float
    fd: int
    text: str
    task_id: str
    function_id: str
    call_id: str = ""
    input_id: str = ""
    ordinal: int = 0
    """Among the lines that its container wrote at the same moment."""

    @property
    def moment(self) -> int:
        """In microseconds."""
        return int(self.at * 1e6)

    @property
    def place(self) -> str:
        """With the moment, what the line is known by after a restart has numbered all of them anew."""
        return f"{self.ordinal}-{self.task_id}"

    @property
    def entry_id(self) -> str:
        return f"{self.moment}-{self.number}-{self.place}"


class AppLog:
    """The lines of one app, numbered without gaps, and a bell for those who follow."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.bell = Bell()
        self._next = 1
        self._latest: dict[str, Line] = {}
        """Of each container."""

    def add(self, output: Output, task: Task, call_id: str, input_id: str) -> None:
        latest = self._latest.get(task.id)
        ordinal = latest.ordinal + 1 if latest is not None and latest.at == output.at else 0
        line = Line(
            self._next, output.at, output.fd, output.text, task.id, task.function_id, call_id, input_id, ordinal
        )
        self._latest[task.id] = line
        self._next += 1
        self.lines.append(line)
        if len(self.lines) > MAX_LINES:
            del self.lines[: MAX_LINES // 2]
        self.bell.ring()

    def after(self, number: int) -> list[Line]:
        """The lines behind number `number`."""
        first = self.lines[0].number if self.lines else self._next
        return self.lines[max(0, number + 1 - first) :]

    def resume(self, entry_id: str) -> int:
        """The number of the line that a follower saw last, if need be by when and where it was written."""
        match = ENTRY_ID.fullmatch(entry_id)
        if match is None:
            return 0
        number, moment = int(match["number"]), int(match["moment"])
        if any(line.entry_id == entry_id for line in self.after(number - 1)[:1]):
            return number
        for line in self.lines:
            if line.moment > moment:
                return line.number - 1
            if line.moment == moment and line.place == match["place"]:
                return line.number
        return self._next - 1


LogBook = defaultdict[str, AppLog]
"""The log of each app by its id."""


class Logs:
    """Answers the log procedures under the plan's lag and retention."""

    def __init__(self, store: Store, book: LogBook, clock: Clock, plan: LogPlan) -> None:
        self._store = store
        self._book = book
        self._clock = clock
        self._plan = plan

    async def app_get_logs(self, request: pb.AppGetLogsRequest, _caller: Caller) -> AsyncIterator[pb.TaskLogsBatch]:
        """Stream until the request's own timeout; `app_done` at the end tells a client not to ask again."""
        task = self._store.task(request.task_id) if request.task_id else None
        app = self._store.app(request.app_id or (task.app_id if task else ""))
        log = self._book[app.id]
        last = log.resume(request.last_entry_id)
        end = time.monotonic() + request.timeout
        while True:
            ear = log.bell.listen()
            for line in self._next_visible(log.after(last)):
                last = line.number
                if _selected(line, request, request.file_descriptor):
                    yield batch(line)
            if self._is_over(app, task) and not log.after(last):
                yield pb.TaskLogsBatch(app_done=True)
                return
            left = end - time.monotonic()
            if left <= 0:
                return
            await ear.wait(min(left, self._plan.lag_s or left))

    async def app_fetch_logs(self, request: pb.AppFetchLogsRequest, _caller: Caller) -> pb.AppFetchLogsResponse:
        found = list(self._between(request))
        return pb.AppFetchLogsResponse(batches=[batch(line) for line in found[-(request.limit or FETCH_LIMIT) :]])

    async def app_count_logs(self, request: pb.AppCountLogsRequest, _caller: Caller) -> pb.AppCountLogsResponse:
        counts: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        for line in self._between(request):
            counts[int(line.at // request.bucket_secs * request.bucket_secs)][line.fd - 1] += 1
        return pb.AppCountLogsResponse(
            app_id=request.app_id,
            buckets=[
                pb.AppCountLogsResponse.LogBucket(
                    bucket_start_at=timestamp(start), stdout_logs=out, stderr_logs=error, system_logs=system
                )
                for start, (out, error, system) in sorted(counts.items())
            ],
        )

    def _between(self, request: Any) -> Iterator[Line]:
        if not request.app_id:
            raise not_found("logs are asked for by app")
        since, until = seconds_of(request.since), seconds_of(request.until)
        for line in self._visible(self._book[self._store.app(request.app_id).id].lines):
            if since <= line.at < until and _selected(line, request, request.source):
                yield line

    def _visible(self, lines: list[Line]) -> list[Line]:
        """Those of `lines` that are old enough to be seen and young enough to be kept."""
        now = self._clock.now().timestamp()
        first, last = now - self._plan.retention_s, now - self._plan.lag_s if self._plan.lag_s else inf
        return [line for line in lines if first <= line.at <= last]

    def _next_visible(self, lines: list[Line]) -> list[Line]:
        """As `_visible`, up to the first line that is too young.

        Containers report independently, so a later line may be the older one; a follower who was given it would go on
        behind it and never see what lies before.
        """
        last = self._clock.now().timestamp() - self._plan.lag_s if self._plan.lag_s else inf
        return self._visible(list(takewhile(lambda line: line.at <= last, lines)))

    def _is_over(self, app: App, task: Task | None) -> bool:
        if task is not None:
            return not task.is_live
        # A stopped app whose containers still die will print a little more.
        return app.is_stopped and not any(each.is_live for each in self._store.tasks_of(app.id))


def batch(line: Line) -> pb.TaskLogsBatch:
    item = pb.TaskLogs(
        data=line.text,
        timestamp=line.at,
        timestamp_ns=int(line.at * 1e9),
        file_descriptor=line.fd,  # type: ignore[arg-type]
        function_call_id=line.call_id,
        input_id=line.input_id,
        container_id=line.task_id,
    )
    return pb.TaskLogsBatch(
        task_id=line.task_id,
        function_id=line.function_id,
        input_id=line.input_id,
        entry_id=line.entry_id,
        items=[item],
    )


def _selected(line: Line, request: Any, source: int) -> bool:
    wanted = (
        (source, line.fd),
        (request.function_id, line.function_id),
        (request.function_call_id, line.call_id),
        (request.task_id, line.task_id),
    )
    return all(not want or want == have for want, have in wanted) and request.search_text in line.text
