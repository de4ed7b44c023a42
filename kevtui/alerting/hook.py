"""The user's own program, run with what is told: a message to a phone, a lamp, a line in a log of theirs.

It gets one JSON object on its input and the first alert in KEVTUI_ALERT_* variables. It has a process group of its
own, a time limit, and no way to the screen: what it prints is read, bounded, and shown only where it failed.
"""

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from kev.text import shorten, visible

VERSION: Final = 1
MOST_AT_ONCE: Final = 50
"""Alerts in one run; `more` counts the rest."""

MOST_OUTPUT: Final = 4096
"""Bytes of its output that are kept, the newest; the rest is read and dropped, so that it never waits for us."""

GRACE_S: Final = 1.0
"""Between asking it to end and ending it."""

MOST_VARIABLE: Final = 1000


def payload(told: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> bytes:
    """The object on its input: `context`, and of `told` as many as fit."""
    value = {"schema_version": VERSION, **context, "alerts": list(told[:MOST_AT_ONCE])}
    value["more"] = max(0, len(told) - MOST_AT_ONCE)
    return (json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n").encode()


def variables(told: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> dict[str, str]:
    """The first of `told` for a program that reads no JSON. Texts are made safe to be printed."""
    first = told[0]
    values = {name: first[name] for name in ("id", "kind", "severity", "subject", "text", "repeats")}
    values |= {"count": len(told), "session": context["session"] or context["title"], "root": context["root"]}
    return {f"KEVTUI_ALERT_{name.upper()}": shorten(visible(str(value)), MOST_VARIABLE)
            for name, value in values.items()}  # fmt: skip


class Hook:
    """Runs the program, one at a time; what is told meanwhile is told together by the next run."""

    def __init__(
        self, argv: Sequence[str], *, timeout_s: float, complain: Callable[[str], object],
        environment: Mapping[str, str] = os.environ,
    ) -> None:  # fmt: skip
        """`complain` is called, from a thread, with the first failure of a row of them."""
        self._argv = tuple(argv)
        self._timeout_s = timeout_s
        self._complain = complain
        self._environment = environment
        self._guard = threading.Lock()
        self._waiting: list[Mapping[str, Any]] = []
        self._context: Mapping[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._failing = False
        self._closed = False

    def tell(self, told: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> None:
        """Have the program told. Returns at once."""
        with self._guard:
            if self._closed:
                return
            self._waiting += told
            self._context = context
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="alert-hook", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is left to be told; false if that took longer."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        return thread is None or not thread.is_alive()

    def close(self) -> None:
        """End a run that is under way, and start no other."""
        with self._guard:
            self._closed = True
            self._waiting.clear()
            process = self._process
        if process is not None:
            _kill(process, signal.SIGTERM)

    def _work(self) -> None:
        while True:
            with self._guard:
                told, self._waiting = self._waiting, []
                context = self._context
                if not told:
                    self._thread = None
                    return
            failure = self._run(told, context)
            if failure and not self._failing and not self._closed:
                with suppress(Exception):  # the screen is gone
                    self._complain(f"the alert hook {self._argv[0]} {failure}")
            self._failing = bool(failure)

    def _run(self, told: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> str:
        """Run it to its end; what went wrong, or ""."""
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**self._environment, **variables(told, context)},
                start_new_session=True,
            )
        except OSError as error:
            return f"cannot be started: {error.strerror or error}"
        with self._guard:
            self._process = process
            if self._closed:
                _kill(process, signal.SIGTERM)
        try:
            output, timely = _converse(process, payload(told, context), self._timeout_s)
        finally:
            with self._guard:
                self._process = None
        if not timely:
            return f"took longer than {self._timeout_s:g} s and was ended"
        last = [line for line in output.decode(errors="backslashreplace").split("\n") if line.strip()]
        words = f": {shorten(visible(last[-1].strip()), 200)}" if last else ""
        if process.returncode:
            how = f"status {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
            return f"ended with {how}{words}"
        return ""


def _converse(process: "subprocess.Popen[bytes]", data: bytes, timeout_s: float) -> tuple[bytes, bool]:
    """Give it `data` and read it to its end: the end of its output, and whether it kept the time.

    A child of it that holds the output open after it has ended is not waited for.
    """
    assert process.stdin is not None and process.stdout is not None
    until = time.monotonic() + timeout_s
    output = b""
    with process.stdin, process.stdout, selectors.DefaultSelector() as ready:
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        ready.register(process.stdin, selectors.EVENT_WRITE)
        ready.register(process.stdout, selectors.EVENT_READ)
        while ready.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in ready.select(min(left, 0.25)):
                if key.fileobj is process.stdin:
                    data = _give(process.stdin.fileno(), data)
                    if not data:
                        ready.unregister(process.stdin)
                        with suppress(OSError):
                            process.stdin.close()
                else:
                    try:
                        piece = os.read(process.stdout.fileno(), 65_536)
                    except BlockingIOError:
                        continue
                    output = (output + piece)[-MOST_OUTPUT:]
                    if not piece:
                        ready.unregister(process.stdout)
            if process.poll() is not None and not ready.select(0):
                break
        timely = _end(process, until)
    return output, timely


def _give(descriptor: int, data: bytes) -> bytes:
    """What is left of `data`; nothing where the program does not want it."""
    try:
        return data[os.write(descriptor, data[:65_536]) :]
    except BlockingIOError:
        return data
    except OSError:
        return b""


def _end(process: "subprocess.Popen[bytes]", until: float) -> bool:
    """Wait for it, and end it with all that it started once its time is over."""
    try:
        process.wait(max(0.0, until - time.monotonic()))
        return True
    except subprocess.TimeoutExpired:
        _kill(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    _kill(process, signal.SIGKILL)
    process.wait()
    return False


def _kill(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
