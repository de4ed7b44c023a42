"""A viewer behind a real sshd on loopback, inside tmux: what reaches the terminal, and what crosses the wire for it.

The sshd is our own: a free port on 127.0.0.1, a host key and an authorized key that are thrown away, nothing of the
machine's configuration.
"""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "terminal"))

from pseudo_terminal import Observation, PseudoTerminal
from session_files import NAME

REPOSITORY = Path(__file__).parents[1]
SEPARATION = Path("/run/sshd")
"""Where an sshd of root wants an empty folder. Where no sshd was ever started, ours gets a /run of its own with one."""

START_S = 30.0
OWN_RUN = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$0" "$@"')


@dataclass
class Wire:
    """Bytes that went through the proxy, TCP payload only."""

    to_client: int = 0
    to_server: int = 0
    open: threading.Event = field(default_factory=threading.Event)
    """Cleared, nothing passes in either direction, and nobody is told."""

    def __post_init__(self) -> None:
        self.open.set()


def programs() -> dict[str, str] | str:
    """Where the programs are, or in words which is missing."""
    found = {name: shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/opt/homebrew/bin")
             for name in ("sshd", "ssh", "ssh-keygen", "tmux")}  # fmt: skip
    missing = [name for name, path in found.items() if path is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    return {name: path for name, path in found.items() if path is not None}


OPTIONS = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "LogLevel=ERROR")
"""What a client of ours is told, whatever the machine's configuration says."""


@contextmanager
def reached(folder: Path, found: dict[str, str]) -> Iterator[tuple[Wire, int]]:
    """An sshd for one connection: what passes, and the port on loopback. `folder` is new: it gets the keys."""
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run([found["ssh-keygen"], "-q", "-N", "", "-t", "ed25519", "-f", folder / name], check=True)
    with _sshd(folder, found["sshd"]) as port, _counted(port) as reach:
        yield reach


@contextmanager
def dashboard(root: Path, folder: Path, found: dict[str, str]) -> Iterator[tuple[PseudoTerminal, Wire]]:
    """A read-only dashboard over `root`, in tmux, behind ssh. `folder` is new, and holds the keys."""
    with ExitStack() as stack:
        wire, listening = stack.enter_context(reached(folder, found))
        socket_path = folder / "tmux"
        stack.callback(subprocess.run, [found["tmux"], "-S", socket_path, "kill-server"], capture_output=True)
        kevtui = [sys.executable, "-m", "kevtui", "session", NAME, "--root", str(root), "--read-only"]
        tmux = [found["tmux"], "-S", str(socket_path), "-f", "/dev/null", "new-session", "-c", str(root)]
        there = shlex.join(["env", f"PYTHONPATH={REPOSITORY}", "LC_ALL=C.UTF-8", *tmux, shlex.join(kevtui)])
        ssh = [found["ssh"], "-tt", "-F", "/dev/null", "-p", str(listening), "-i", str(folder / "user")]
        ssh += [part for option in OPTIONS for part in ("-o", option)]
        yield stack.enter_context(PseudoTerminal([*ssh, "127.0.0.1", there], cwd=root)), wire


def observe(terminal: PseudoTerminal, wire: Wire, seconds: float) -> tuple[Observation, float]:
    """What the terminal was sent in that time, and bytes/s on the wire towards it."""
    before = wire.to_client
    seen = terminal.observe(seconds)
    return seen, (wire.to_client - before) / seen.seconds


@contextmanager
def _sshd(folder: Path, sshd: str) -> Iterator[int]:
    port = _free_port()
    (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
    lines = [f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder / 'host'}", "PidFile none", "UsePAM no",
             f"AuthorizedKeysFile {folder / 'authorized'}", "AuthenticationMethods publickey", "StrictModes no",
             "PermitRootLogin prohibit-password", "PrintMotd no", "X11Forwarding no",
             "Subsystem sftp internal-sftp"]  # fmt: skip
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    with (folder / "sshd.log").open("wb") as log:
        own = OWN_RUN if os.geteuid() == 0 and not SEPARATION.is_dir() else ()
        process = subprocess.Popen([*own, sshd, "-D", "-e", "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)  # fmt: skip
    try:
        _await(process, port, folder / "sshd.log")
        yield port
    finally:
        process.terminate()
        process.wait()


def _await(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise SystemExit(f"sshd did not start: {log.read_text().strip()[-300:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _counted(port: int) -> Iterator[tuple[Wire, int]]:
    """A proxy on loopback in front of `port`, for one connection. Its port, and what goes through it."""
    wire = Wire()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                client, _ = server.accept()
                with client, socket.create_connection(("127.0.0.1", port)) as there:
                    back = threading.Thread(target=_pass_on, args=(there, client, wire, "to_client"), daemon=True)
                    back.start()
                    _pass_on(client, there, wire, "to_server")
                    back.join()

        threading.Thread(target=serve, name="wire", daemon=True).start()
        yield wire, int(server.getsockname()[1])


def _pass_on(source: socket.socket, sink: socket.socket, wire: Wire, direction: str) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            wire.open.wait()
            setattr(wire, direction, getattr(wire, direction) + len(data))
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
