"""Nights from seeds: whatever happens at any await or write, the invariants of the engine hold."""

import os
import time
from pathlib import Path

import pytest
from world import World

CHUNK = 500
IN_CI = 10_000
IN_SOAK = 100_000
"""`KEV_SOAK_SECONDS` ends a soak earlier."""

FAILED_ONCE = {int(line.split()[0]): "".join(line.split()[1:])
               for line in Path(__file__).with_name("failing_seeds.txt").read_text().splitlines()
               if line and not line.startswith("#")}  # fmt: skip
"""Seed to the name of the fault that its night shows; empty where none is known."""


def run(seed: int, patch: pytest.MonkeyPatch) -> World:
    """The night of a seed, on a disk of its own."""
    world = World(seed)
    with patch.context() as context:
        world.disk.install(context)
        try:
            world.run()
        except BaseException:
            print(f"seed {seed}: add it to failing_seeds.txt\n" + "\n".join(world.trace[-60:]))
            raise
    return world


@pytest.mark.parametrize("seed", FAILED_ONCE)
def test_a_night_that_once_went_wrong(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, monkeypatch)


@pytest.mark.parametrize("first", range(0, IN_CI, CHUNK))
def test_whatever_happens_the_invariants_hold(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chunk(first, monkeypatch)


@pytest.mark.soak
def test_they_hold_for_many_more_nights(monkeypatch: pytest.MonkeyPatch) -> None:
    end = time.monotonic() + float(os.environ.get("KEV_SOAK_SECONDS", "inf"))
    for first in range(IN_CI, IN_CI + IN_SOAK, CHUNK):
        if time.monotonic() > end:
            break
        run_chunk(first, monkeypatch)


def run_chunk(first: int, patch: pytest.MonkeyPatch) -> None:
    """CHUNK nights. A simulation in which nothing happens proves nothing, so what they came to is looked at too."""
    restarts, finished, mixed, fates = 0, 0, 0, set()
    for seed in range(first, first + CHUNK):
        world = run(seed, patch)
        restarts += world.restarts
        finished += world.people.finished > 0
        mixed += any(name.startswith("blend/") for name in world.compute.spawned)
        fates |= {attempt.outcome for attempt in world.attempts}
    assert restarts > CHUNK / 2
    assert finished > CHUNK / 2
    assert mixed > CHUNK / 20
    assert {"succeeded", "failed", "timed_out", "lost", "abandoned", "cancelled"} <= fates
