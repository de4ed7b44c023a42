"""Work on the disk that training does not wait for: one thread, in order, and the first failure is everybody's."""

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class BackgroundWriter:
    """Runs jobs one after another in a thread of its own.

    A job that raises ends the writing: no later job runs, so that nothing is acknowledged that was to stand on what
    failed, and the error is raised by the next `check`, `submit` or `finish`.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._pending = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="background-writer", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a job is running or waiting."""
        with self._changed:
            return self._pending > 0

    def submit(self, job: Callable[[], object]) -> None:
        """Run `job` after those before it."""
        self.check()
        with self._changed:
            self._pending += 1
        self._jobs.put(job)

    def check(self) -> None:
        """Raise what a job raised."""
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Wait for every job, then raise what one raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending == 0)
        self.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What was begun is ended also when training failed: a resume point that is nearly there is worth having.
        with self._changed:
            self._changed.wait_for(lambda: self._pending == 0)
        self._jobs.put(None)
        self._thread.join()
        if error is None:
            self.check()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if self._error is None:
                    job()
            except BaseException as error:
                self._error = error
            with self._changed:
                self._pending -= 1
                self._changed.notify_all()
