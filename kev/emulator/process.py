"""One container's process, as the emulator sees it: started through the supervisor, signalled, and waited for."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

SUPERVISOR = Path(__file__).with_name("supervisor.py")
LINE_LIMIT = 1024 * 1024
POLL_S = 0.005
HAS_PROC = Path("/proc/self/stat").exists()


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of what a container printed: Unix seconds, 1 for stdout or 2 for stderr, and the text."""

    at: float
    fd: int
    text: str


class Process:
    """A running container. `exit_code` is negative for the signal that ended it."""

    def __init__(self, supervisor: asyncio.subprocess.Process, on_output: Callable[[Output], None]) -> None:
        self._supervisor = supervisor
        self._on_output = on_output
        self.pid = 0
        self.exit_code: int | None = None
        self._done = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, directory: Path, command: list[str], environment: dict[str, str], cwd: Path,
        on_output: Callable[[Output], None],
    ) -> "Process":  # fmt: skip
        """Start `command` under a supervisor that keeps its records in `directory`."""
        supervisor = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(SUPERVISOR), str(directory), *command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment, cwd=cwd,
            start_new_session=True, limit=LINE_LIMIT,
        )  # fmt: skip
        return cls(supervisor, on_output)

    def signal(self, number: int) -> None:
        """Send a signal to the container's main process; SIGKILL goes to everything it started."""
        if self._supervisor.stdin is not None and not self._supervisor.stdin.is_closing():
            self._supervisor.stdin.write(f"{int(number)}\n".encode())

    async def wait(self) -> int:
        """Return the exit code once the process and everything it started is gone and its output is read."""
        await asyncio.shield(self._done)
        assert self.exit_code is not None
        return self.exit_code

    async def _listen(self) -> None:
        assert self._supervisor.stdout is not None
        async for line in self._supervisor.stdout:
            report = orjson.loads(line)
            if "pid" in report:
                self.pid = report["pid"]
            elif "exit" in report:
                self.exit_code = report["exit"]
            else:
                self._on_output(Output(report["at"], report["fd"], report["text"]))
        await self._supervisor.wait()
        if self._supervisor.stdin is not None:
            self._supervisor.stdin.close()
            with suppress(BrokenPipeError, ConnectionResetError):
                await self._supervisor.stdin.wait_closed()
        if self.exit_code is None:  # the supervisor itself was killed
            self.exit_code = -signal.SIGKILL
            if self.pid:
                await end_group(self.pid)


async def end_group(pid: int) -> None:
    """Kill a process group, and wait until its leader runs no more, though we are not its parent."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    while is_running(pid):
        await asyncio.sleep(POLL_S)


def birth_of(pid: int) -> str:
    """The moment a process began, or "" where the system has no /proc or the process runs no more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A zombie waits for a parent that may never come.
    return "" if fields[0] in "ZX" else fields[19]


def is_running(pid: int) -> bool:
    """Whether a process of this user runs under `pid`."""
    if HAS_PROC:
        return bool(birth_of(pid))
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
