"""Brings every line of output to its call, and says what the platform does; also after a restart, from the records."""

from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.emulator.entities import Attempt, Notice, Task
from kev.emulator.logs import PLATFORM, LogBook
from kev.emulator.process import Output
from kev.emulator.store import Store
from kev.emulator.wire import new_id

OUTPUT_LIMIT = 1024 * 1024 * 1024


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
        self._add(task, output)

    def say(self, task: Task, text: str) -> None:
        """A line of the platform itself, kept in the journal since no container holds it."""
        now = self._clock.now().timestamp()
        notice = Notice(id=new_id("no"), app_id=task.app_id, task_id=task.id, function_id=task.function_id,
                        at=now, text=text + "\n")  # fmt: skip
        self._store.save(notice)
        self._add(task, Output(now, PLATFORM, notice.text))

    def wake(self, app_id: str) -> None:
        """Let followers see that something ended."""
        self._book[app_id].bell.ring()

    def restore(self, tasks: Path) -> None:
        """Fill the book from the journal and from what supervisors wrote, in the order of time."""
        for attempt in sorted(self._store.attempts.values(), key=lambda each: each.started):
            self.begin(attempt)
        lines: list[tuple[Task, Output]] = []
        for notice in self._store.notices.values():
            if notice.task_id in self._store.tasks:
                task = self._store.tasks[notice.task_id]
                lines.append((task, Output(notice.at, PLATFORM, notice.text)))
        for task in self._store.tasks.values():
            path = tasks / task.id / "output.jsonl"
            if path.exists():
                read = files.parse_json_lines(files.read_bytes(path, limit=OUTPUT_LIMIT))
                lines += [(task, Output(**each.value)) for each in read if isinstance(each.value, dict)]
        for task, output in sorted(lines, key=lambda each: each[1].at):
            self._add(task, output)

    def _add(self, task: Task, output: Output) -> None:
        attempts = self._attempts[task.id]
        place = bisect_right(attempts, output.at, key=lambda each: each.started)
        attempt = attempts[place - 1] if place else None
        call_id, input_id = (attempt.call_id, attempt.input_id) if attempt else ("", "")
        self._book[task.app_id].add(output, task, call_id, input_id)
