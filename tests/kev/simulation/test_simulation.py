"""Nights from seeds: whatever happens at any await or write, the invariants of the engine hold."""

import pytest
from world import World

KEPT = [5, 35, 52, 1534, 1900]
"""Seeds that once failed."""

CHUNK = 500
IN_CI, IN_SOAK = range(0, 2000, CHUNK), range(2000, 22_000, CHUNK)
"""About 30 ms of a core each: as many as fit a minute of two workers, and the rest where there is time."""


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


@pytest.mark.parametrize("first", IN_CI)
def test_whatever_happens_the_invariants_hold(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chunk(first, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("first", IN_SOAK)
def test_they_hold_for_many_more_nights(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chunk(first, monkeypatch)


def run_chunk(first: int, patch: pytest.MonkeyPatch) -> None:
    worlds = [run(seed, patch) for seed in range(first, first + CHUNK)]
    # A simulation in which nothing happens proves nothing.
    assert sum(world.restarts for world in worlds) > CHUNK / 2
    assert sum(world.finished > 0 for world in worlds) > CHUNK / 2
    fates = {attempt.outcome for world in worlds for attempt in world.attempts}
    assert {"succeeded", "failed", "timed_out", "lost", "abandoned"} <= fates
