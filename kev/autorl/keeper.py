"""The process between the runner and an agent: what the agent starts can leave it neither by forking nor by a session.

    python -m kev.autorl.keeper GRACE COMMAND ...

Orphans below it become its children (a child subreaper, on Linux), so that the whole tree is found by ancestry. When
the command ends, when this process is told to end, or when the runner dies in whatever way, the rest of the tree is
told to end, and killed GRACE seconds later. Exit status: the command's, 128 + N where signal N ended it.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress

from kev.autorl.process_tree import descendants, send, stop

SET_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
AWAITED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


class Tree:
    """The command as process `agent`, and everything that it started."""

    def __init__(self, agent: int) -> None:
        self.agent = agent
        self.status: int | None = None
        """The wait status of the command; None while it runs."""

    def rest(self) -> set[int]:
        """What is left of it, after every child that has ended was taken in."""
        self.reap()
        return descendants(os.getpid())

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.agent:
                    self.status = status

    def signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.agent, number)


def main(arguments: list[str]) -> int:
    """Run the command and see its tree end. Returns the exit code."""
    grace, command = float(arguments[0]), arguments[1:]
    runner = os.getppid()
    _set(SET_CHILD_SUBREAPER, 1)
    _set(SET_DEATH_SIGNAL, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    if os.getppid() != runner:
        return 128 + signal.SIGTERM  # the runner died before it could be told that it would be watched
    agent = subprocess.Popen(
        command, start_new_session=True, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    )
    tree = Tree(agent.pid)
    while tree.status is None and signal.sigwait(AWAITED) == signal.SIGCHLD:
        tree.reap()
    told = tree.status is None
    tree.signal_group(signal.SIGTERM)
    stop(tree.rest, grace)
    if not sys.platform.startswith("linux"):
        tree.signal_group(signal.SIGKILL)
    tree.reap()
    if tree.status is None:
        send({agent.pid}, signal.SIGKILL)
        return 128 + (signal.SIGTERM if told else signal.SIGKILL)
    code = os.waitstatus_to_exitcode(tree.status)
    return code if code >= 0 else 128 - code


def _set(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
