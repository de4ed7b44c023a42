"""The simulation has teeth: an engine with any one of these faults does not survive its nights."""

from collections.abc import Iterable

import mutations
import pytest
from mutations import MUTATIONS, RARE, Mutation, built_in
from test_simulation import FAILED_ONCE, run

NIGHTS = 400
NIGHTS_IN_SOAK = 10_000


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_fault_that_is_built_into_the_engine_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(mutation, monkeypatch, range(NIGHTS))


@pytest.mark.parametrize(("seed", "fault"), [pair for pair in FAILED_ONCE.items() if pair[1]])
def test_a_night_that_once_went_wrong_goes_wrong_with_the_fault_that_it_showed(
    seed: int, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(getattr(mutations, fault), monkeypatch, [seed])


@pytest.mark.soak
@pytest.mark.parametrize("mutation", RARE, ids=lambda mutation: mutation.__name__)
def test_a_fault_that_seldom_shows_is_found_in_more_nights(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(mutation, monkeypatch, range(NIGHTS_IN_SOAK))


def found(mutation: Mutation, patch: pytest.MonkeyPatch, seeds: Iterable[int]) -> bool:
    """Whether one of these nights goes wrong in an engine with this fault."""
    with built_in(mutation, patch):
        for seed in seeds:
            try:
                run(seed, patch)
            except Exception:  # a broken invariant, or an engine that breaks by itself
                return True
    return False
