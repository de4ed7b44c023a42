"""Runs one container, and leaves nobody behind when it ends.

A script of its own with the standard library alone: it is started once per container, so every spawn waits for what it
imports.

    supervisor.py DIRECTORY PROGRAM [ARGUMENT ...]

The emulator holds the other ends of stdin and stdout. stdin brings signal numbers, one a line; its end means that the
emulator is gone, and then the container is killed at once. stdout reports JSON lines: {"pid"}, {"at", "fd", "text"}
for output, {"exit", "at"} at the end. The same output goes to DIRECTORY/output.jsonl and the end to
DIRECTORY/exit.json, so that an emulator that was killed finds after its restart what its containers did.

Three nets below each other: the end of stdin (works everywhere), the parent-death signal (Linux, if this process is
killed as well), and DIRECTORY/process.json, from which the next emulator finds what both missed.
"""

# The few file operations here are of the os module: pathlib and contextlib would double the time this takes to start.
# ruff: noqa: PTH105, PTH118, PTH123, SIM105

import ctypes
import json
import os
import selectors
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CHUNK = 64 * 1024
DRAIN_S = 2.0
MAX_RECORD = 256 * 1024 * 1024  # bytes of output kept on disk per container
NICENESS = 2  # fifty containers that start at once must not keep the emulator, or a dashboard, from answering

LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def main(directory: str, command: list[str]) -> None:
    if LIBC is not None:
        # Descendants that leave the process group come back here when their parent dies, and are ended below.
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    # The terminal's own signals are the emulator's to answer; it closes our stdin when it is done.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    ready_read, ready_write = os.pipe()
    outputs = {1: os.pipe(), 2: os.pipe()}
    me = os.getpid()
    child = os.fork()
    if child == 0:
        # With our copy of the write end open, the death of the supervisor would never show at the read end.
        os.close(ready_write)
        become(command, me, ready_read, outputs)
    for _, write_end in outputs.values():
        os.close(write_end)
    os.close(ready_read)
    record = {"supervisor": me, "supervisor_born": birth(me), "pid": child, "born": birth(child)}
    save(directory, "process.json", record)
    # Only now may the program start: nothing runs that the next emulator could not find.
    os.write(ready_write, b"!")
    os.close(ready_write)

    log = os.open(os.path.join(directory, "output.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    tell({"pid": child})
    Watch(directory, child, {fd: pair[0] for fd, pair in outputs.items()}, wake_read, log).run()


def become(command: list[str], parent: int, ready_read: int, outputs: dict[int, tuple[int, int]]) -> "NoReturn":
    """Turn the forked child into the program: in its own group, with default signals, once it is on record."""
    try:
        os.setpgid(0, 0)
        os.nice(NICENESS)
        if LIBC is not None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        # A parent in the background leaves SIGINT ignored, and preemption would then do nothing.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # A parent that died before the death signal was asked for sends none.
        if os.read(ready_read, 1) != b"!" or os.getppid() != parent:
            os._exit(125)
        for fd, (_, write_end) in outputs.items():
            os.dup2(write_end, fd)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.closerange(3, 256)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(126)


class Watch:
    """Waits for orders, output and the end of the program."""

    def __init__(self, directory: str, child: int, outputs: dict[int, int], wake: int, log: int) -> None:
        self.directory, self.child, self.log = directory, child, log
        self.outputs = dict(outputs)
        self.tails = dict.fromkeys(outputs, b"")
        self.orders = b""
        self.status: int | None = None
        self.recorded = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ, self.obey)
        self.selector.register(wake, selectors.EVENT_READ, self.woken)
        for fd, end in outputs.items():
            self.selector.register(end, selectors.EVENT_READ, lambda end, fd=fd: self.read(fd, end))

    def run(self) -> None:
        while self.status is None:
            self.turn(None)
            self.reap()
        at = time.time()
        self.end_the_rest()
        deadline = time.monotonic() + DRAIN_S
        while self.outputs and time.monotonic() < deadline:
            self.turn(deadline - time.monotonic())
        for fd, tail in self.tails.items():
            if tail:
                self.emit(fd, tail)
        report = {"exit": os.waitstatus_to_exitcode(self.status), "at": at}
        try:
            save(self.directory, "exit.json", report)
        except OSError:
            pass  # then the emulator learns it from us, or goes by the last output
        tell(report)

    def turn(self, timeout: float | None) -> None:
        for key, _ in self.selector.select(timeout):
            key.data(key.fd)

    def woken(self, wake: int) -> None:
        os.read(wake, 4096)

    def reap(self) -> None:
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid:
            self.status = status

    def obey(self, end: int) -> None:
        data = os.read(end, 4096)
        if not data:
            self.selector.unregister(end)
            self.kill_group()
            return
        *lines, self.orders = (self.orders + data).split(b"\n")
        for line in lines:
            # The child is not reaped yet, so its id cannot have gone to anyone else.
            if int(line) == signal.SIGKILL:
                self.kill_group()
            else:
                os.kill(self.child, int(line))

    def read(self, fd: int, end: int) -> None:
        data = os.read(end, CHUNK)
        if not data:
            self.selector.unregister(end)
            del self.outputs[fd]
            return
        whole = self.tails[fd] + data
        cut = whole.rfind(b"\n") + 1
        if not cut and len(whole) >= CHUNK:
            cut = whole_characters(whole)  # a progress bar that never ends its line
        if cut:
            self.emit(fd, whole[:cut])
        self.tails[fd] = whole[cut:]

    def emit(self, fd: int, data: bytes) -> None:
        at = time.time()
        texts = [line.decode(errors="replace") for line in data.splitlines(keepends=True)]
        record = b"".join(json.dumps({"at": at, "fd": fd, "text": text}).encode() + b"\n" for text in texts)
        self.recorded += len(record)
        if self.recorded <= MAX_RECORD:
            try:
                os.write(self.log, record)
            except OSError:
                pass  # a full disk must not end the program; who follows the log still sees the line
        send(record)

    def kill_group(self) -> None:
        try:
            os.killpg(self.child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def end_the_rest(self) -> None:
        """Kill what the program started and left: its group, and on Linux every other descendant."""
        self.kill_group()
        for _ in range(1000):
            left = children()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.waitpid(-1, 0 if left else os.WNOHANG)
            except ChildProcessError:
                return
            if not left:
                return


def whole_characters(data: bytes) -> int:
    """How much of `data` can be decoded now: all but a UTF-8 character whose end is still to come."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < needed else len(data)
        if byte < 0x80:
            break
    return len(data)


def children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listing:
            return [int(pid) for pid in listing.read().split()]
    except OSError:
        return []


def birth(pid: int) -> str:
    """The moment a process began, as the system writes it: with it, a reused id is not taken for the old process."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def save(directory: str, name: str, value: "dict[str, Any]") -> None:
    path = os.path.join(directory, name)
    with open(path + ".tmp", "w") as stream:
        json.dump(value, stream)
    os.replace(path + ".tmp", path)


def tell(value: "dict[str, Any]") -> None:
    send(json.dumps(value).encode() + b"\n")


def send(record: bytes) -> None:
    data = memoryview(record)
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        pass  # the emulator is gone; stdin says so as well


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
