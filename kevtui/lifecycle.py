"""Living and dying with the terminal: hang-up, signals, suspending and coming back.

Textual 8.2 leaves gaps that an unattended dashboard cannot have. With SIGHUP ignored (nohup, some multiplexers) a
vanished terminal reads as end of file and the input thread spins on it for ever; writing to one that is gone is a
traceback. SIGTERM ends the process with the terminal in raw mode, on the alternate screen. After a stop from outside,
SIGCONT starts a second input and a second output thread beside the first. After `fg` only what changes is painted, on a
screen that is empty. And COLUMNS and LINES from the environment are believed before the terminal.
"""

import os
import select
import signal
import sys
import termios
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import IO, Any, cast

from textual import constants
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from kev.errors import UsageError
from kevtui.colour_codes import without_repeats

GRACE_S = 1.0
"""How long an orderly end may take before the process ends without one."""

HANGUP_POLL_S = 1.0
"""A hang-up is told by poll() at once; this is for systems whose poll() does not know terminals."""

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

ESCAPE_S = 0.01
"""How long an escape may still turn out to begin another key, unless ESCDELAY says otherwise: as in tmux since 3.5.
Textual waits 100 to 200 ms; but terminals send at once what one key means."""

LOOK_S = 0.1
"""Between two looks of the thread that reads keys at whether it should end."""

WEB_DRIVER = "TEXTUAL_DRIVER"
"""Set by whoever takes the screen through pipes instead of a terminal, as `kevtui web` does: there is no terminal to
guard then, and the screen ends with its pipe (kevtui.web_driver)."""

RESTORE = (
    b"\x1b[?2026l"  # no frame left open
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # no mouse
    b"\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"  # no reports of focus, paste, size, extended keys
    b"\x1b[0m\x1b[?7h\x1b[?1049l\x1b[?25h"  # line wrap, the normal screen, the cursor
)
"""Undoes every mode the screen may have set, for an end that Textual cannot carry out itself."""


def guard(app: App[Any]) -> None:
    """Make `app` live and die with its terminal. Call before `app.run()`; a headless run is not affected."""
    app.driver_class = TerminalDriver
    if "ESCDELAY" not in os.environ:
        constants.ESCAPE_DELAY = ESCAPE_S  # type: ignore[misc]  # read at each escape
    # The terminal's own key, which it no longer acts on by itself in raw mode.
    app.bind("ctrl+z", "suspend_process", show=False)


def run(app: App[Any], *, mouse: bool = True) -> int:
    """Run `app` in the terminal, guarded. Returns its exit code, 128 + n where signal n ended it.

    Raises UsageError where there is no terminal to run in.
    """
    if os.environ.get(WEB_DRIVER) is None:
        _take_terminal()
        guard(app)
    else:
        from kevtui import web_driver

        web_driver.guard(app)
    app.run(mouse=mouse)
    return app.return_code or 0


def _take_terminal() -> None:
    """Read keys from the terminal even where standard input is something else, as pagers do."""
    if not (os.isatty(sys.stdout.fileno()) or os.isatty(sys.stderr.fileno())):
        raise UsageError("no terminal to draw on; use --plain, --once or --json")
    if not os.isatty(0):
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            raise UsageError("no terminal to read keys from; use --plain, --once or --json") from None
        os.dup2(terminal, 0)
        os.close(terminal)


class _Writing:
    """The terminal as a file to which nothing can fail to be written: that it is gone is told by its watch, and the
    end is in order only if the thread that writes does not die of it first."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


class TerminalDriver(LinuxDriver):
    """Textual's driver, with an end for every way in which a terminal can go away, and a way back from each stop."""

    def __init__(self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: Any = None) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if sys.__stdout__ is not None and not (self._file and self._file.isatty()):
            # Errors sent to a file must not take the screen with them.
            self._file = sys.__stdout__
        if self._file is not None:
            self._file = cast(TextIOWrapper, _Writing(self._file))
        self._attributes = _attributes(self.fileno)
        self._suspending = False
        self._pausing = False
        self._ending = False
        self._ended = threading.Event()
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._end_on_signal)
        threading.Thread(target=self._watch_terminal, name="terminal-watch", daemon=True).start()

    def _get_terminal_size(self) -> tuple[int, int]:
        """Columns and rows by the terminal's own word: COLUMNS and LINES, where they are set, never change with it."""
        with suppress(OSError, ValueError):
            if self._file is not None and all(size := os.get_terminal_size(self._file.fileno())):
                return size.columns, size.lines
        return super()._get_terminal_size()

    def write(self, data: str) -> None:
        super().write(without_repeats(data))

    def run_input_thread(self) -> None:
        """Read keys until told to stop, and look at an escape that nothing follows when its time is over."""
        # As Textual's own loop, which looks ten times a second only, so that an escape waits for that.
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        selector = select.poll()
        selector.register(self.fileno, select.POLLIN)
        while not self.exit_event.is_set():
            waits = constants.ESCAPE_DELAY if parser._timeout_time is not None else LOOK_S
            if selector.poll(waits * 1000):
                data = b""
                with suppress(OSError):
                    data = os.read(self.fileno, 4096)
                if not data:
                    self.exit_event.wait(LOOK_S)  # the terminal is gone, which is told elsewhere
                if text := decode(data):
                    self._pass_on(parser.feed(text))
            self._pass_on(parser.tick())

    def _pass_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)

    def close(self) -> None:
        super().close()
        if not self._pausing:
            self._ended.set()

    def suspend_application_mode(self) -> None:
        self._pausing = True
        super().suspend_application_mode()
        self._pausing = False

    def stop_application_mode(self) -> None:
        if self._mouse_pixels:
            self.write("\x1b[?1016l")
        super().stop_application_mode()

    # ------------------------------------------------------------------------------------------------------ ending

    def _end_on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._end(128 + number)

    def _watch_terminal(self) -> None:
        """Wait until the terminal is gone, without asking it anything and without waking up for its input."""
        poll = select.poll()
        poll.register(self.fileno, 0)  # a hang-up is reported unasked
        while not self._ended.is_set():
            if poll.poll(HANGUP_POLL_S * 1000) or _attributes(self.fileno) is None:
                self._end(128 + signal.SIGHUP)
                return

    def _end(self, code: int) -> None:
        """End in order, or without order once `GRACE_S` are over. May be called on any thread and in a handler."""
        if self._ending:
            return
        self._ending = True
        threading.Thread(target=self._end_hard, args=(code,), name="last-resort", daemon=True).start()
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(lambda: self._app.exit(return_code=code))

    def _end_hard(self, code: int) -> None:
        in_order = self._ended.wait(GRACE_S)
        if in_order:
            # The terminal is restored. Normally the process is gone before this is over; what keeps it may be a
            # thread that waits for a dead file system.
            threading.Event().wait(GRACE_S / 4)
        else:
            self._restore()
        os._exit(code)

    def _restore(self) -> None:
        """Restore the terminal past Textual, which may be stuck, and without waiting for the terminal."""
        with suppress(OSError, termios.error, ValueError):
            if self._file is not None:
                writable = select.poll()
                writable.register(self._file.fileno(), select.POLLOUT)
                if any(events & select.POLLOUT for _, events in writable.poll(0)):
                    os.write(self._file.fileno(), RESTORE)
            if self._attributes is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self._attributes)

    # -------------------------------------------------------------------------------------------------- suspending

    def _sigtstp_application(self, *_: object) -> None:
        # Later, on the loop: a handler runs between any two instructions, also in the middle of a frame.
        self._loop.call_soon_threadsafe(self._suspend)

    def _sigcont_application(self, *_: object) -> None:
        if not self._suspending:
            self._loop.call_soon_threadsafe(self._come_back_from_outside)

    def _suspend(self) -> None:
        """Give the terminal back and stop, together with whatever runs in the same job, until continued."""
        if self._suspending or not self._auto_restart:
            return
        self._suspending = True
        self.suspend_application_mode()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # The whole group: under `make` or a script, the shell waits for the leader and not for us. SIGTSTP and not
        # SIGSTOP: the kernel drops it where no shell is left to continue us, instead of freezing us for ever.
        os.kill(0, signal.SIGTSTP)
        self._wait_for_foreground()
        signal.signal(signal.SIGTSTP, handler)
        self._suspending = False
        self._resume()

    def _come_back_from_outside(self) -> None:
        """Take the terminal again after a SIGSTOP, which gave no time to leave it."""
        if self._suspending or not self._auto_restart or self._ending:
            return
        self._suspending = True
        self._wait_for_foreground()
        self.suspend_application_mode()
        self._suspending = False
        self._resume()

    def _wait_for_foreground(self) -> None:
        """Stay stopped while the job is in the background (`bg`), where drawing would spoil the shell's screen."""
        with suppress(OSError):
            while os.tcgetpgrp(self.fileno) != os.getpgrp():
                os.kill(os.getpid(), signal.SIGSTOP)

    def _resume(self) -> None:
        self._must_signal_resume = True
        self.resume_application_mode()
        # The terminal's screen is empty now and the compositor believes it full.
        self._app.call_later(self._repaint)

    def _repaint(self) -> None:
        self._app.refresh(layout=True)


def _attributes(descriptor: int) -> list[Any] | None:
    """The terminal's settings, or None where there is no terminal (any more)."""
    try:
        return termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):
        return None
