"""Kill -9 at random moments: what was acknowledged is there after a restart, and agrees with what really ran."""

import asyncio
import multiprocessing
import os
import random
import signal
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import modal
import pytest

from kev.clock import SystemClock
from kev.emulator.__main__ import main
from kev.emulator.journal import Journal
from kev.emulator.money import Meter
from kev.emulator.store import Store

from .conftest import load_app

ROUNDS = 24
SOAK_ROUNDS = 300
STEPS = 3


NURSERY = multiprocessing.get_context("forkserver")
NURSERY.set_forkserver_preload(["kev.emulator.plane"])
"""Every emulator is a process of its own, forked from one that has imported the client already."""


def serve(root: str, output: Connection) -> None:
    """The body of an emulator's process: the command itself, with its standard output on a pipe."""
    os.dup2(output.fileno(), 1)
    sys.exit(main(["up", "--root", root]))


@dataclass
class Subject:
    """An emulator in a process of its own, killed and started again on the same root."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: Any = None

    async def start(self) -> None:
        reader, writer = NURSERY.Pipe(duplex=False)
        self.process = NURSERY.Process(target=serve, args=(str(self.root), writer))
        self.process.start()
        writer.close()
        with os.fdopen(os.dup(reader.fileno())) as stream:
            while (line := await asyncio.to_thread(stream.readline)).startswith("export "):
                name, _, value = line.removeprefix("export ").strip().partition("=")
                self.environment[name] = value
        reader.close()
        assert line.startswith("# serving on"), line

    async def end(self, number: int) -> None:
        os.kill(self.process.pid, number)
        await asyncio.to_thread(self.process.join)
        self.process.close()

    def processes(self) -> dict[int, str]:
        """Supervisors and containers of this root, by process id: each has the root in its environment."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    environment, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if f"HOME={self.root}/".encode() in environment:
                    found[int(entry.name)] = "supervisor" if b"supervisor.py" in command else "container"
        return found


async def kill_something(subject: Subject, chance: random.Random) -> None:
    """Mostly the emulator; now and then only a container or a supervisor."""
    victims = subject.processes()
    if victims and chance.random() < 0.25:
        os.kill(chance.choice(sorted(victims)), signal.SIGKILL)
        return
    await subject.end(signal.SIGKILL)
    await subject.start()


async def spawn(number: int, log: Path, client: Any) -> tuple[int, str] | None:
    """The id of an acknowledged call, or None if the client gave up."""
    function = modal.Function.from_name("night", "work", client=client)
    try:
        return number, (await function.spawn.aio(str(log), number, STEPS)).object_id
    except (modal.exception.Error, OSError):
        return None


@dataclass
class Outcome:
    """What is left of a night: the emulator, the notes of its containers, and the calls it acknowledged."""

    subject: Subject
    log: Path
    client: Any
    acknowledged: dict[str, int] = field(default_factory=dict)


async def run_night(root: Path, rounds: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    chance, subject = random.Random(seed), Subject(root / "plane")
    await subject.start()
    for name, value in subject.environment.items():
        monkeypatch.setenv(name, value)
    client = await modal.Client.from_credentials.aio(
        subject.environment["MODAL_TOKEN_ID"], subject.environment["MODAL_TOKEN_SECRET"]
    )
    await load_app().app.deploy.aio(client=client)
    outcome = Outcome(subject, root / "notes", client)
    for number in range(rounds):
        spawned = asyncio.ensure_future(spawn(number, outcome.log, client))
        await asyncio.wait({spawned}, timeout=chance.choice([0, 0.005, 0.02, 0.3, 0.5, 0.7]))
        await kill_something(subject, chance)
        if (answer := await spawned) is not None:
            outcome.acknowledged[answer[1]] = answer[0]
    return outcome


@dataclass
class Run:
    """What one container noted about one call."""

    begin: float = 0
    last: float = 0
    ended: bool = False
    printed: list[str] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)


def read_notes(log: Path) -> dict[tuple[str, str], Run]:
    runs: dict[tuple[str, str], Run] = defaultdict(Run)
    for line in log.read_text().splitlines():
        kind, call, task, at, *rest = line.split(" ", 4)
        run = runs[call, task]
        run.begin = run.begin or float(at)
        run.last = float(at)
        run.ended |= kind == "end"
        if kind in ("printed", "committed"):
            getattr(run, kind).append(rest[0])
    return runs


async def check_night(outcome: Outcome) -> None:
    subject, client = outcome.subject, outcome.client
    for call, number in outcome.acknowledged.items():
        assert await modal.FunctionCall.from_id(call, client=client).get.aio(timeout=120) == number * number
    function = modal.Function.from_name("night", "work", client=client)
    while (await function.get_current_stats.aio()).num_running_inputs:
        pass  # accepted although the client never heard of it, and still at work
    runs = read_notes(outcome.log)
    volume = modal.Volume.from_name("night-runs", client=client)
    files = {entry.path async for entry in volume.iterdir.aio("/")}
    printed = {}
    for call in {call for call, _ in runs}:
        logs = modal.FunctionCall.from_id(call, client=client).logs
        printed[call] = "".join([entry.message async for entry in logs.tail.aio(1000)])
    await client.__aexit__(None, None, None)
    await subject.end(signal.SIGTERM)
    assert subject.processes() == {}, "left behind"
    check_records(outcome, runs, files, printed)


def check_records(outcome: Outcome, runs: dict[tuple[str, str], Run], files: set[str], printed: dict[str, str]) -> None:
    store = Store(Journal(outcome.subject.root / "journal.jsonl"))
    store.load()
    assert set(store.calls) >= set(outcome.acknowledged), "an acknowledged call is gone"
    assert all(store.calls[call].is_done for call in outcome.acknowledged)
    attempts = {(each.call_id, each.task_id) for each in store.attempts.values()}
    assert set(runs) <= attempts, "something ran that is not on record"
    for (call, task), run in runs.items():
        assert set(run.committed) <= files, "a commit that was confirmed is gone"
        missing = [line for line in run.printed if f"{line}\n" not in printed[call]]
        assert not missing, f"lines that were printed are not in the log of {call}: {missing}"
        record = store.tasks[task]
        assert record.started <= run.begin and run.last <= record.finished, "billed for less than what ran"
        assert record.finished - run.last < 60
    for call in {call for call, _ in runs}:
        spans = sorted((run.begin, run.last) for (each, _), run in runs.items() if each == call)
        assert all(first[1] <= second[0] for first, second in pairwise(spans)), "worked on twice at once"
    by_hand = sum(
        (sum(task.hourly.values()) * Decimal(str(task.finished - task.started)) / 3600
         for task in store.tasks.values() if task.started),
        Decimal(0),
    )  # fmt: skip
    assert abs(Meter(store, SystemClock()).total() - by_hand) < Decimal("1e-12")
    assert not [task for task in store.tasks.values() if task.is_live]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of a root through /proc")
async def test_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = await run_night(tmp_path, ROUNDS, 20_261, monkeypatch)
    assert len(outcome.acknowledged) > ROUNDS // 2
    await check_night(outcome)


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of a root through /proc")
async def test_hundreds_of_kills_lose_and_double_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print("seed", seed)
    await check_night(await run_night(tmp_path, SOAK_ROUNDS, seed, monkeypatch))
