"""A terminal made of a pseudo-terminal: runs a program in it, answers its queries, and measures what it costs.

Costs are bytes written and CPU time from /proc, which hold on a busy machine too; seconds of wall time are only used
as deadlines.
"""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyte

DEADLINE_S = 60.0
"""How long a condition may take to come true before the test fails; generous, for shared machines."""

HAS_PROC = Path("/proc/self/schedstat").exists()

ANSWERS: dict[str, dict[bytes, bytes]] = {
    # Query to answer, as a pattern and its expansion: a backslash of an answer is written twice.
    # What a terminal of today answers; it offers synchronized output and no in-band resize.
    "answering": {
        rb"\x1b\[0?c": b"\x1b[?62;22c",
        rb"\x1b\[>0?q": b"\x1bP>|xterm(388)\x1b\\\\",
        rb"\x1b\]1([01]);\?(?:\x07|\x1b\\)": b"\x1b]1\\1;rgb:0000/0000/0000\x1b\\\\",
        rb"\x1b\[\?2026\$p": b"\x1b[?2026;2$y",
        rb"\x1b\[\?2048\$p": b"\x1b[?2048;0$y",
        rb"\x1b\[\?u": b"\x1b[?0u",
        rb"\x1b\[6n": b"\x1b[1;1R",
    },
    # tmux 3.3a says what it is, and nothing about synchronized output, resizing, colours or keys.
    "silent": {
        rb"\x1b\[0?c": b"\x1b[?1;2c",
        rb"\x1b\[>0?q": b"\x1bP>|tmux 3.3a\x1b\\\\",
    },
}

UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]")
"""Sequences with private markers, of which pyte would print the end."""


@dataclass(frozen=True)
class Observation:
    """What a program cost over a window of `seconds`."""

    seconds: float
    cpu_s: float
    written: int
    """Bytes sent to the terminal."""

    @property
    def cpu_percent(self) -> float:
        """Of one core."""
        return 100 * self.cpu_s / self.seconds

    @property
    def bytes_per_s(self) -> float:
        return self.written / self.seconds


class PseudoTerminal:
    """`argv` running in a terminal of `columns` by `rows`; leaving the block kills it and everything it started."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 40,
        answers: str = "answering",
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        ignore_hangup: bool = False,
    ) -> None:
        self.raw = bytearray()
        """Everything the program wrote to the terminal."""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._shown = self._answered = 0
        self._answers = [(re.compile(query), answer) for query, answer in ANSWERS[answers].items()]
        self._master, slave = os.openpty()
        self._set_size(columns, rows)

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, signal.SIG_IGN if ignore_hangup else signal.SIG_DFL)

        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=_environment(env or {}),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(slave)

    def __enter__(self) -> "PseudoTerminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in reversed(self._processes()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        self.hang_up()

    # ---------------------------------------------------------------------------------------------------- the user

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        self.read(0)
        self._show()
        self._set_size(columns, rows)
        self.screen.resize(lines=rows, columns=columns)

    def hang_up(self) -> None:
        """Take the terminal away, as a closed window or a lost connection does."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    # ---------------------------------------------------------------------------------------------------- the view

    @property
    def text(self) -> str:
        """The screen as it is now, one line a row."""
        self._show()
        return "\n".join(self.screen.display)

    def screen_after(self, size: int) -> pyte.Screen:
        """The screen once `size` bytes had come: not fewer than were looked at before."""
        self._show(size)
        return self.screen

    def wait_for(self, condition: str | Callable[[], bool], *, deadline_s: float = DEADLINE_S) -> float:
        """Wait for a text on the screen, or for a condition. Returns seconds since the start of the program."""
        end = time.perf_counter() + deadline_s
        while True:
            if condition in self.text if isinstance(condition, str) else condition():
                return time.perf_counter() - self.started
            if time.perf_counter() > end:
                raise AssertionError(f"waited in vain for {condition}; the screen shows:\n{self.text.rstrip()}")
            if not self.read(0.05) and self.process.poll() is not None and not self.read(0):
                raise AssertionError(f"ended with {self.process.returncode} before {condition}:\n{self.text.rstrip()}")

    def wait_for_bytes(self, text: str) -> float:
        """Like `wait_for`, for a text written from now on in one piece; cheap enough to time the program by."""
        begun = len(self.raw)
        return self.wait_for(lambda: self.raw.find(text.encode(), max(0, begun - len(text))) >= 0)

    def wait_until_quiet(self, quiet_s: float = 0.5, *, deadline_s: float = DEADLINE_S) -> None:
        """Wait until nothing has been written for `quiet_s`."""
        end = time.perf_counter() + deadline_s
        while self.read(quiet_s):
            if time.perf_counter() > end:
                raise AssertionError(f"still writing after {deadline_s} s: {bytes(self.raw[-300:])!r}")

    def wait_for_exit(self, *, deadline_s: float = DEADLINE_S) -> int:
        """The exit code; negative for the signal that killed it."""
        end = time.perf_counter() + deadline_s
        while self.process.poll() is None:
            if time.perf_counter() > end:
                raise AssertionError(f"still running after {deadline_s} s")
            self.read(0.02)
        while self.read(0.02):
            pass
        return self.process.returncode

    def read(self, timeout_s: float) -> bool:
        """Take in what the program writes within `timeout_s`, and answer it. Returns whether it wrote anything."""
        if self._master < 0:
            time.sleep(timeout_s)  # no descriptor is left to wait on
            return False
        if not select.select([self._master], [], [], timeout_s)[0]:
            return False
        try:
            data = os.read(self._master, 1 << 20)
        except OSError:  # EIO: the last process has closed the terminal
            data = b""
        self.raw += data
        if data:
            self._answer()
        elif timeout_s:
            time.sleep(min(timeout_s, 0.02))
        return bool(data)

    def _answer(self) -> None:
        # From where the last answer ended, less the longest query: it may have come in two pieces.
        start = max(self._answered, len(self.raw) - (1 << 20) - 32)
        queries = [
            (match.end(), match.expand(answer))
            for query, answer in self._answers
            for match in query.finditer(self.raw, start)
        ]
        for end, answer in sorted(queries):
            os.write(self._master, answer)
            self._answered = max(self._answered, end)

    def _show(self, size: int | None = None) -> None:
        until = len(self.raw) if size is None else size
        if self._shown < until:
            self._stream.feed(UNKNOWN_TO_PYTE.sub(b"", bytes(self.raw[self._shown : until])))
            self._shown = until

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def settings(self) -> list[object]:
        """The terminal's settings, as `termios.tcgetattr` gives them."""
        return termios.tcgetattr(self._master)

    # --------------------------------------------------------------------------------------------------- the costs

    def observe(self, seconds: float) -> Observation:
        """Watch for `seconds`: the window is what is measured, not a wait for something."""
        self.read(0)
        before, written, begun = self._thread_times(), len(self.raw), time.perf_counter()
        while (left := begun + seconds - time.perf_counter()) > 0:
            self.read(left)
        elapsed = time.perf_counter() - begun
        spent = sum(spent_ns - before.get(thread, 0) for thread, spent_ns in self._thread_times().items())
        return Observation(elapsed, spent / 1e9, len(self.raw) - written)

    def cpu_s(self) -> float:
        """CPU time of the program and everything it started, from the beginning; to a hundredth."""
        ticks = 0
        for process in self._processes():
            fields = _proc(process, "stat").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12]) if fields else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Resident memory of the program and everything it started."""
        found = [re.search(r"VmRSS:\s+(\d+)", _proc(process, "status")) for process in self._processes()]
        return sum(int(match[1]) for match in found if match) / 1024

    def _thread_times(self) -> dict[str, int]:
        """Nanoseconds of CPU time of each thread."""
        times = {}
        for process in self._processes():
            for thread in _entries(f"/proc/{process}/task"):
                run = _proc(process, f"task/{thread}/schedstat").split()
                times[thread] = int(run[0]) if run else 0
        return times

    def _processes(self) -> list[int]:
        found, waiting = [], [self.process.pid]
        while waiting:
            process = waiting.pop()
            found.append(process)
            for thread in _entries(f"/proc/{process}/task"):
                waiting += [int(child) for child in _proc(process, f"task/{thread}/children").split()]
        return found


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """A terminal of today, whatever the tests themselves run in; None removes a variable."""
    removed = {"NO_COLOR", "TMUX", "COLUMNS", "LINES", "TEXTUAL", "SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT", "CI"}
    env: dict[str, str | None] = {name: value for name, value in os.environ.items() if name not in removed}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"} | dict(changes)
    return {name: value for name, value in env.items() if value is not None}


def _proc(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text()
    except OSError:  # it has ended
        return ""


def _entries(directory: str) -> list[str]:
    try:
        return [entry.name for entry in Path(directory).iterdir()]
    except OSError:
        return []
