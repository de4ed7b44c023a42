"""Nights from seeds: whatever happens at any await or write, the invariants of the engine hold."""

import os

import pytest
from world import World

KEPT: list[int] = []
"""Seeds that once failed."""

SEEDS = int(os.environ.get("KEV_SIMULATION_SEEDS", "400"))


def run(seed: int, patch: pytest.MonkeyPatch) -> World:
    world = World.__new__(World)
    with patch.context() as context:
        world.__init__(seed)  # type: ignore[misc]
        world.disk.install(context)
        try:
            world.run()
        except BaseException:
            print(f"seed {seed}\n" + "\n".join(world.trace[-60:]))
            raise
    return world


@pytest.mark.parametrize("seed", KEPT)
def test_a_night_that_once_went_wrong(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, monkeypatch)


def test_whatever_happens_the_invariants_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [run(seed, monkeypatch) for seed in range(SEEDS)]
    # A simulation in which nothing happens proves nothing.
    assert sum(world.restarts for world in worlds) > SEEDS / 4
    assert sum(world.finished > 0 for world in worlds) > SEEDS / 2
