"""Several ranks of `python -m kev.train` on this machine, as one training that fails, stops and ends as a whole.

torchrun would do, if its meeting place did not listen on every network interface. Here the ranks meet in a file, and
talk to each other on loopback.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kev.errors import KevError
from kev.text import shorten, visible
from kev.threads import LIBRARIES, threads_for

MEETING = "KEV_MEETING"
"""The file in which ranks find each other."""

PACKAGES = Path(__file__).resolve().parents[2]
"""Where kev is, which ranks must import too, wherever they run."""

LOOK_S = 0.2
GRACE_S = 10.0
"""For ranks to end by themselves, after one failed or they were told to."""

ELSEWHERE = "see the logs of the others"
"""In what a rank says that failed only because another did."""


def train_on_ranks(arguments: Sequence[str], ranks: int, cwd: Path, check: Callable[[], None]) -> None:
    """Run `python -m kev.train ARGUMENTS` as so many ranks in `cwd`, and return when all of them have succeeded.

    `check` is called a few times a second; whatever it raises, or arrives as an exception meanwhile, ends every rank
    and is passed on. Raises KevError with what the rank said that failed.
    """
    with tempfile.TemporaryDirectory(prefix="kev-ranks-") as directory, ExitStack() as errors:
        processes: list[Rank] = []
        try:
            for number in range(ranks):
                stderr = errors.enter_context(tempfile.TemporaryFile())
                environment = rank_environment(number, ranks, Path(directory), os.environ)
                processes.append(Rank.start(number, arguments, cwd, environment, stderr))
            _attend(processes, check)
        finally:
            _end(processes)


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a training, and what it writes to stderr."""

    number: int
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    @classmethod
    def start(
        cls, number: int, arguments: Sequence[str], cwd: Path, environment: dict[str, str], stderr: IO[bytes]
    ) -> "Rank":
        process = subprocess.Popen(
            # -P: what lies in the working directory is data, and is not imported.
            [sys.executable, "-P", "-m", "kev.train", *arguments],
            cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stderr=stderr,
        )  # fmt: skip
        return cls(number, process, stderr)

    @property
    def code(self) -> int | None:
        """Its exit code, negative for the signal that killed it; None while it runs."""
        return self.process.poll()

    def last_words(self) -> str:
        """Why it failed, in one line."""
        code = self.code or 0
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        return shorten(visible(lines[-1]), 1000) if lines else f"ended with exit code {code}"


def rank_environment(number: int, ranks: int, place: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What a rank is told, beside what this process was."""
    threads = str(threads_for(processes=ranks, environment={}).threads)
    with suppress(KeyError, ValueError):
        threads = str(max(1, int(environment[LIBRARIES[0]]) // ranks))
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {
        **environment,
        **dict.fromkeys(LIBRARIES, threads),
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        MEETING: str(place / "meeting"),
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
        "PYTHONPATH": os.pathsep.join([str(PACKAGES), *filter(None, [environment.get("PYTHONPATH")])]),
        "PYTHONUNBUFFERED": "1",
    }


def _attend(ranks: list[Rank], check: Callable[[], None]) -> None:
    while not any(rank.code for rank in ranks):
        if all(rank.code == 0 for rank in ranks):
            return
        check()
        time.sleep(LOOK_S)
    # The others hear of it at their next exchange, and the one that really failed may not be the first to end.
    _wait(ranks, GRACE_S)
    raise KevError(_reason([rank for rank in ranks if rank.code]))


def _reason(failed: list[Rank]) -> str:
    said = [(rank, rank.last_words()) for rank in failed]
    rank, words = next((each for each in said if ELSEWHERE not in each[1]), said[0])
    return f"rank {rank.number}: {words}"


def _end(ranks: list[Rank]) -> None:
    """Ask those that still run to end, and kill them if they do not."""
    for rank in ranks:
        if rank.code is None:
            rank.process.terminate()
    _wait(ranks, GRACE_S)
    for rank in ranks:
        if rank.code is None:
            rank.process.kill()
        rank.process.wait()


def _wait(ranks: list[Rank], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(rank.code is None for rank in ranks):
        time.sleep(LOOK_S / 4)
