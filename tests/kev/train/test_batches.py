"""Every record is trained once an epoch, ranks keep step, and no pass is larger than it may be."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import Refused
from kev.train.batches import Batching, StepPlan, largest_pass, plan_epoch, split_by_length, split_passes


class ByLength:
    """Records of one sequence each, padded to the longest."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths

    def __call__(self, places: Sequence[int]) -> int:
        return len(places) * max((self.lengths[place] for place in places), default=0)


def lengths() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 60), min_size=1, max_size=40)


def batchings() -> st.SearchStrategy[Batching]:
    return st.builds(
        Batching, batch=st.integers(1, 5), accum=st.integers(1, 4), world=st.integers(1, 3), length_sort=st.booleans()
    )


def places(steps: list[StepPlan]) -> list[int]:
    return [place for step in steps for batches in step.ranks for batch in batches for place in batch]


@given(lengths(), batchings(), st.integers(0, 99))
def test_every_record_is_in_an_epoch_and_only_what_fills_the_last_step_is_there_twice(
    found: list[int], batching: Batching, seed: int
) -> None:
    steps = plan_epoch(batching, ByLength(found), records=len(found), seed=seed, epoch=0)
    used = places(steps)
    assert set(used) == set(range(len(found)))
    assert len(used) - len(found) == -len(found) % batching.world
    assert len(steps) == batching.steps_per_epoch(len(found))


@given(lengths(), batchings(), st.integers(0, 99))
def test_ranks_have_as_many_micro_batches_as_each_other(found: list[int], batching: Batching, seed: int) -> None:
    for step in plan_epoch(batching, ByLength(found), records=len(found), seed=seed, epoch=1):
        assert len(step.ranks) == batching.world
        assert len({len(batches) for batches in step.ranks}) == 1
        assert all(batch for batches in step.ranks for batch in batches)


@given(lengths(), batchings(), st.integers(60, 200))
def test_no_pass_is_over_the_ceiling(found: list[int], batching: Batching, ceiling: int) -> None:
    held = Batching(batching.batch, batching.accum, batching.world, length_sort=True, ceiling=ceiling)
    cost = ByLength(found)
    steps = plan_epoch(held, cost, records=len(found), seed=0, epoch=0)
    assert largest_pass(steps, cost) <= ceiling
    assert set(places(steps)) == set(range(len(found)))


def test_a_record_that_is_over_the_ceiling_by_itself_is_refused() -> None:
    held = Batching(2, 2, length_sort=True, ceiling=50)
    with pytest.raises(Refused, match="record 2 alone has 51 padded tokens, more than pass_tokens_max 50"):
        plan_epoch(held, ByLength([10, 51, 10]), records=3, seed=0, epoch=0)


@given(st.lists(st.integers(1, 30), min_size=3, max_size=8), st.integers(1, 3))
def test_sorted_micro_batches_are_cut_where_the_costliest_is_cheapest(found: list[int], count: int) -> None:
    cost = ByLength(found)
    (step,) = plan_epoch(Batching(len(found), count, length_sort=True), cost, records=len(found), seed=0, epoch=0)
    ordered = sorted(range(len(found)), key=lambda place: found[place])
    best = min(
        max(cost(ordered[start:end]) for start, end in zip((0, *cuts), (*cuts, len(ordered)), strict=True))
        for cuts in combinations(range(1, len(ordered)), min(count, len(ordered)) - 1)
    )
    assert max(cost(batch) for batch in step.ranks[0]) == best


def test_the_costliest_micro_batches_of_all_ranks_go_first() -> None:
    found = [1, 1, 2, 2, 9, 9, 10, 10]
    (step,) = plan_epoch(Batching(2, 2, 2, length_sort=True), ByLength(found), records=8, seed=0, epoch=0)
    costs = [[ByLength(found)(batch) for batch in batches] for batches in step.ranks]
    assert min(rank[0] for rank in costs) >= max(rank[1] for rank in costs)


def test_epochs_have_orders_of_their_own() -> None:
    batching, cost = Batching(4, 1), ByLength([1] * 32)
    first, again, second = (places(plan_epoch(batching, cost, records=32, seed=5, epoch=epoch)) for epoch in (0, 0, 1))
    assert first == again != second


@given(lengths(), st.integers(1, 100))
def test_passes_of_a_budget_hold_every_record_in_order(found: list[int], budget: int) -> None:
    cost = ByLength(found)
    passes = split_passes(range(len(found)), cost, budget)
    assert [place for part in passes for place in part] == list(range(len(found)))
    assert all(cost(part) <= budget or len(part) == 1 for part in passes)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(0, 80))
def test_a_micro_batch_is_cut_by_length_where_that_costs_least(found: list[int], overhead: int) -> None:
    cost = ByLength(found)
    passes = split_by_length(range(len(found)), cost, overhead)
    assert sorted(place for part in passes for place in part) == list(range(len(found)))
    ordered = sorted(range(len(found)), key=lambda place: found[place])
    best = min(
        sum(cost(ordered[start:end]) + overhead for start, end in zip((0, *cuts), (*cuts, len(ordered)), strict=True))
        for count in range(len(ordered))
        for cuts in combinations(range(1, len(ordered)), count)
    )
    assert sum(cost(part) + overhead for part in passes) == best
