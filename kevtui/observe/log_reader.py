"""One open log and the one thread that reads it, so that neither a slow disk nor a long search holds up the screen."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from kevtui.observe.log_file import LogFile

T = TypeVar("T")


class ReaderClosed(Exception):
    """The answer will not come, or comes too late: the reader was closed."""


class LogReader:
    """Runs functions of the log one after another, in the order they were asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._closed = False
        self._asked: SimpleQueue[tuple[Callable[[LogFile], Any], Future[Any]] | None] = SimpleQueue()
        # A daemon, and so no executor: a read that hangs on a dead network volume must not keep the program alive.
        threading.Thread(target=self._run, name="log-reader", daemon=True).start()

    async def read(self, function: Callable[[LogFile], T]) -> T:
        """What `function` returns for the log, which the first call opens.

        Raises what `LogFile` raises, and ReaderClosed once closed.
        """
        if self._closed:
            raise ReaderClosed
        answer: Future[T] = Future()
        self._asked.put((function, answer))
        result = await asyncio.wrap_future(answer)
        if self._closed:
            raise ReaderClosed
        return result

    def close(self) -> None:
        """Close the log behind whatever is still being read, without waiting for it."""
        if not self._closed:
            self._closed = True
            self._asked.put(None)

    def _run(self) -> None:
        log: LogFile | None = None
        while (asked := self._asked.get()) is not None:
            function, answer = asked
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                log = log or LogFile(self.path)
                result = function(log)
            except Exception as error:  # whatever it is, whoever asked must hear of it
                _answer(answer.set_exception, error)
            else:
                _answer(answer.set_result, result)
        if log is not None:
            log.close()


def _answer(settle: Callable[[Any], None], value: Any) -> None:
    with suppress(RuntimeError):  # the loop that asked is closed
        settle(value)
