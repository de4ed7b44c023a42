"""The simulation has teeth: an engine with any one of these faults does not survive its nights."""

import pytest
from mutations import MUTATIONS, RARE, Mutation, built_in
from test_simulation import run

NIGHTS = 400
NIGHTS_IN_SOAK = 5000


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_fault_that_is_built_into_the_engine_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(mutation, monkeypatch, NIGHTS)


@pytest.mark.soak
@pytest.mark.parametrize("mutation", RARE, ids=lambda mutation: mutation.__name__)
def test_a_fault_that_seldom_shows_is_found_in_more_nights(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(mutation, monkeypatch, NIGHTS_IN_SOAK)


def found(mutation: Mutation, patch: pytest.MonkeyPatch, nights: int) -> bool:
    """Whether one of so many nights goes wrong in an engine with this fault."""
    with built_in(mutation, patch):
        for seed in range(nights):
            try:
                run(seed, patch)
            except Exception:  # a broken invariant, or an engine that breaks by itself
                return True
    return False
