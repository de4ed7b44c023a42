"""One open log and the one thread that reads it, so that neither a slow disk nor a long search holds up the screen."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from kevtui.observe.log_file import LogFile

T = TypeVar("T")


class LogReader:
    """Runs functions of the log one after another, in the order they were asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="log-reader")
        self._log: LogFile | None = None
        self._closed = False

    async def read(self, function: Callable[[LogFile], T]) -> T:
        """What `function` returns for the log, which the first call opens.

        Raises what `LogFile` raises, and asyncio.CancelledError once closed.
        """
        if self._closed:
            raise asyncio.CancelledError
        result = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, function)
        if self._closed:
            raise asyncio.CancelledError
        return result

    def close(self) -> None:
        """Close the log behind whatever is still being read, without waiting for it."""
        if not self._closed:
            self._closed = True
            self._thread.submit(self._close)
            self._thread.shutdown(wait=False)

    def _run(self, function: Callable[[LogFile], T]) -> T:
        if self._log is None:
            self._log = LogFile(self.path)
        return function(self._log)

    def _close(self) -> None:
        if self._log is not None:
            self._log.close()
