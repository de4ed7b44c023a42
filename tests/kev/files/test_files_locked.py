"""One holder at a time, named to the others, and gone when it dies."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kev import files
from kev.errors import LockHeld


def test_a_held_lock_is_refused_by_its_holder_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "locks" / ".a.lock"
    with files.locked(path), pytest.raises(LockHeld, match=f"process {os.getpid()} on"), files.locked(path):
        pass
    with files.locked(path), files.locked(tmp_path / ".other.lock"):
        pass


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / ".a.lock"
    code = (
        "import sys; from pathlib import Path; from kev import files\n"
        "with files.locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(LockHeld, match=f"process {holder.pid}"), files.locked(path):
            pass
        holder.send_signal(signal.SIGKILL)
    with files.locked(path):
        pass


def test_waiting_for_a_lock_ends_when_it_is_given_back(tmp_path: Path) -> None:
    path, inside, order = tmp_path / ".a.lock", threading.Event(), []

    def wait() -> None:
        inside.set()
        with files.locked(path, wait=True):
            order.append("waiter")

    waiter = threading.Thread(target=wait)
    with files.locked(path):
        waiter.start()
        inside.wait()
        order.append("holder")
    waiter.join()
    assert order == ["holder", "waiter"]
