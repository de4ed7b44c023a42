"""Brings every line of output to its call, and says what the platform does; also after a restart, from the records."""

from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.emulator.entities import Attempt, Call, Notice, Task
from kev.emulator.logs import PLATFORM, LogBook
from kev.emulator.process import Output
from kev.emulator.store import Store
from kev.emulator.wire import new_id

OUTPUT_LIMIT = 512 * 1024 * 1024
"""Supervisors record half of this per container at most."""


class Narrator:
    """Writes the log book."""

    def __init__(self, store: Store, book: LogBook, clock: Clock) -> None:
        self._store = store
        self._book = book
        self._clock = clock
        self._attempts: dict[str, list[Attempt]] = defaultdict(list)

    def begin(self, attempt: Attempt) -> None:
        """What the container prints from now on belongs to this attempt."""
        self._attempts[attempt.task_id].append(attempt)

    def print(self, task: Task, output: Output) -> None:
        self._add(task, output, self._attempt_at(task, output.at))

    def say(self, task: Task, text: str, call: Call | None = None) -> None:
        """A line of the platform itself, about a container or one call in it; journalled, since no container has it."""
        now = self._clock.now().timestamp()
        notice = Notice(
            id=new_id("no"), app_id=task.app_id, task_id=task.id, function_id=task.function_id, at=now,
            text=text + "\n", call_id=call.id if call else "", input_id=call.input_id if call else "",
        )  # fmt: skip
        self._store.save(notice)
        self._repeat(notice)

    def wake(self, app_id: str) -> None:
        """Let followers see that something ended."""
        self._book[app_id].bell.ring()

    def restore(self, tasks: Path) -> None:
        """Fill the book from the journal and from what supervisors wrote, in the order of time."""
        for attempt in sorted(self._store.attempts.values(), key=lambda each: each.started):
            self.begin(attempt)
        known = self._store.tasks
        lines: list[tuple[float, Task, Output | Notice]] = [
            (notice.at, known[notice.task_id], notice)
            for notice in self._store.notices.values()
            if notice.task_id in known
        ]
        for task in known.values():
            path = tasks / task.id / "output.jsonl"
            if path.exists():
                read = files.parse_json_lines(files.read_bytes(path, limit=OUTPUT_LIMIT))
                outputs = [Output(**each.value) for each in read if isinstance(each.value, dict)]
                lines += [(output.at, task, output) for output in outputs]
        for _, task, line in sorted(lines, key=lambda each: each[0]):
            if isinstance(line, Notice):
                self._repeat(line)
            else:
                self.print(task, line)

    def _attempt_at(self, task: Task, at: float) -> Attempt | None:
        attempts = self._attempts[task.id]
        place = bisect_right(attempts, at, key=lambda each: each.started)
        return attempts[place - 1] if place else None

    def _repeat(self, notice: Notice) -> None:
        task = self._store.tasks[notice.task_id]
        self._book[notice.app_id].add(Output(notice.at, PLATFORM, notice.text), task, notice.call_id, notice.input_id)

    def _add(self, task: Task, output: Output, attempt: Attempt | None) -> None:
        call_id, input_id = (attempt.call_id, attempt.input_id) if attempt else ("", "")
        self._book[task.app_id].add(output, task, call_id, input_id)
