"""A container's program is never left behind by a supervisor that dies while starting it."""

import subprocess
import sys

import pytest

DIES_BEFORE_THE_WORD = """
import os
from kev.emulator import supervisor
supervisor.LIBC = None  # no death signal, as on a Mac or before it was asked for
supervisor.save = lambda *arguments: os._exit(9)  # as a kill between the fork and the word to start
supervisor.main(os.environ["DIRECTORY"], ["sleep", "1000"])
"""

HAS_ANOTHER_PARENT = """
import os, sys
from kev.emulator.supervisor import become
ready_read, ready_write = os.pipe()
os.write(ready_write, b"!")  # the word was given, and then its giver died
os.close(ready_write)
become(["sleep", "1000"], os.getppid() + 1, ready_read, {})
"""


@pytest.mark.parametrize("program", [DIES_BEFORE_THE_WORD, HAS_ANOTHER_PARENT])
def test_a_program_whose_supervisor_died_before_it_began_ends(
    program: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("task")
    # Whatever is left behind would hold the pipe open, so that reading it to its end is the proof.
    subprocess.run(
        [sys.executable, "-c", program], env={"DIRECTORY": str(directory), "PYTHONPATH": ":".join(sys.path)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False, timeout=30,
    )  # fmt: skip
