"""A watcher that outlives its terminal, with a handshake: either it is said to watch and does, or nothing is left."""

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kev import files
from kev.errors import Refused

READY_FD = "KEV_WATCH_READY"
START_S = 300.0
READY = b"ready\n"
LAST_BYTES = 4000


def detach(arguments: Sequence[str], log: Path) -> int:
    """Start `python -m kev.rounds watch` with `arguments` in a session of its own. Returns its process id.

    It appends to `log`. Raises Refused, with its last line, if it ended or did not get through its first pass in time.
    """
    reading, writing = os.pipe()
    with files.open_log(log) as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kev.rounds", "watch", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, READY_FD: str(writing), "PYTHONUNBUFFERED": "1"},
            pass_fds=(writing,),
            start_new_session=True,
        )
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], START_S)
        if ready and os.read(reading, len(READY)) == READY:
            # It lives on by itself; without this its handle would complain that it was never waited for.
            process.returncode = 0
            return process.pid
    finally:
        os.close(reading)
    if process.poll() is None:
        process.kill()
    process.wait()
    raise Refused(f"the watcher did not start: {_last_line(log)} (see {log})")


def say_ready() -> None:
    """Tell whoever detached this process that it watches; nothing if nobody did."""
    number = os.environ.pop(READY_FD, None)
    if number is not None:
        os.write(int(number), READY)
        os.close(int(number))


def _last_line(log: Path) -> str:
    lines = files.read_bytes(log)[-LAST_BYTES:].decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
