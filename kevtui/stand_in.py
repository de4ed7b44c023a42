"""A process for the shell to wait for, beside the one that reads a volume that may hang.

A thread that waits for the other end of a dead FUSE mount cannot be ended, by SIGKILL neither, and as long as it is
there its process is not gone: the screen is restored, and no prompt comes. So where the files lie on a volume of
another machine, a child does the work and says when it is done with it. Whoever started kevtui waits for the parent,
which never touches the volume.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

GRACE_S = 2.0
"""How long the child may take to end after a signal; more than the dashboard takes to restore the terminal."""

DONE_GRACE_S = 0.5
"""And how long once it has said that its work is done."""

ALREADY_TOLD_S = 0.3
"""A key tells the whole job, so that the child knows, too; telling it twice would break into its orderly end."""

_LOOK_S = 0.01


def run(work: Callable[[], int]) -> int:
    """What `work` returns, done in a child; 128 + n where signal n ended it. Comes back in both processes.

    `work` has its end on the terminal behind it when it returns: nothing is waited for after that.
    """
    here, parent_lives = os.pipe()
    told, tell = os.pipe()
    _flush()
    child = os.fork()
    if child:
        os.close(here)
        os.close(tell)
        # Not by way of the interpreter's end, which may look for a module on the volume.
        os._exit(_wait(child, told))
    os.close(parent_lives)
    os.close(told)
    threading.Thread(target=_end_with_parent, args=(here,), name="stand-in", daemon=True).start()
    status = work()
    _flush()
    with suppress(OSError):  # the parent is gone
        os.write(tell, bytes([status & 0xFF]))
    return status


def _end_with_parent(here: int) -> None:
    """Without the parent nobody waits for this process, and the terminal is somebody else's."""
    while os.read(here, 1):
        pass
    os.kill(os.getpid(), signal.SIGHUP)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _wait(child: int, told: int) -> int:
    """The exit status for whoever waits, as soon as there is one; what is left of the child is killed."""
    asked, ask = os.pipe()
    os.set_blocking(ask, False)
    signal.set_wakeup_fd(ask, warn_on_full_buffer=False)
    for each in ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, lambda *_: None)
    number = os.read(asked, 1)[0] if asked in select.select([told, asked], [], [])[0] else 0
    status = _status_of(child, ALREADY_TOLD_S if number else DONE_GRACE_S)
    if status is None and number:
        _kill(child, number)
        status = _status_of(child, GRACE_S)
    if status is None:
        said = os.read(told, 1) if select.select([told], [], [], 0)[0] else b""
        status = said[0] if said else 128 + (number or signal.SIGKILL)
        # It hangs, and is gone as soon as the volume lets go of it.
        _kill(child, signal.SIGKILL)
    return status


def _status_of(child: int, within_s: float) -> int | None:
    """The exit status of `child` once it is gone, 128 + n where signal n ended it; None where it stays."""
    end = time.monotonic() + within_s
    while True:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if time.monotonic() >= end:
            return None
        time.sleep(_LOOK_S)


def _kill(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)
