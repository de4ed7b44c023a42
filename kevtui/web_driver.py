"""Living and dying with the browser: the screen of a dashboard that `kevtui web` started ends when its page does.

Textual's driver for this stops reading when the pipe from the server ends and stays: a dashboard on which nothing
changes would outlive a server that was killed. And it waits for ever for an end that something keeps.
"""

import os
import threading
from contextlib import suppress
from functools import partial
from typing import Any

from textual.app import App
from textual.drivers.web_driver import WebDriver

GRACE_S = 2.0
"""How long an orderly end may take before the process ends without one."""


def guard(app: App[Any]) -> None:
    """Make `app` live and die with its pipe, if that is what it draws to. Call before `app.run()`."""
    if app.driver_class is WebDriver:
        app.driver_class = PipeDriver


class PipeDriver(WebDriver):
    """Textual's driver, with an end for every way in which a browser or its server can go away."""

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: Any = None) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = partial(_write_whole, self.fileno)

    def run_input_thread(self) -> None:
        super().run_input_thread()
        self._end()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "quit":
            self._end()
        else:
            super().on_meta(packet_type, payload)

    def _end(self) -> None:
        """End in order, or without order once `GRACE_S` are over."""
        threading.Thread(target=_end_hard, name="last-resort", daemon=True).start()
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(lambda: self._app.exit())


def _write_whole(descriptor: int, data: bytes) -> int:
    """Nothing fails to be written: that nobody reads any more is told by the end of the input."""
    left = data
    with suppress(OSError):
        while left:
            left = left[os.write(descriptor, left) :]
    return len(data)


def _end_hard() -> None:
    # Normally the process is gone before this is over; what keeps it may be a thread that waits for a dead file system.
    threading.Event().wait(GRACE_S)
    os._exit(1)
