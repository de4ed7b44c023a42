"""Which records go through the model together: the order of an epoch, its optimizer steps, their micro-batches.

Everything is a function of the seed, the epoch and the records' lengths, so that every rank makes the same plan and a
continuation makes it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kev.data.draw import Draw
from kev.errors import Refused


class Cost(Protocol):
    """The padded tokens of one pass over the records at these places."""

    def __call__(self, places: Sequence[int]) -> int: ...


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One optimizer step: `ranks[r]` are the micro-batches of rank r, each a tuple of places in the records.

    Every rank has as many micro-batches as the others, or collective calls would wait for ever.
    """

    ranks: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def records(self) -> int:
        """Records of the step over all ranks, repeats counted: what the loss is divided by."""
        return sum(len(batch) for batches in self.ranks for batch in batches)


@dataclass(frozen=True, slots=True)
class Batching:
    """How an epoch is cut: `batch` records a micro-batch, `accum` micro-batches a rank and step, `world` ranks."""

    batch: int
    accum: int
    world: int = 1
    length_sort: bool = False
    ceiling: int | None = None
    """The most padded tokens one pass may have; micro-batches are added until none has more."""

    @property
    def per_step(self) -> int:
        return self.batch * self.accum * self.world

    def steps_per_epoch(self, records: int) -> int:
        return -(-records // self.per_step)


def plan_epoch(batching: Batching, cost: Cost, *, records: int, seed: int, epoch: int) -> list[StepPlan]:
    """The steps of an epoch over `records` records. Raises Refused if one record alone passes the ceiling."""
    order = Draw(seed, f"order:{epoch}").shuffled(range(records))
    size = batching.per_step
    steps = []
    for start in range(0, records, size):
        chunk = order[start : start + size]
        # Ranks must have as many records each; the epoch's first ones are the least likely to be in this step already.
        missing = -len(chunk) % batching.world
        chunk += [order[number % records] for number in range(missing)]
        steps.append(_balanced(batching, cost, chunk) if batching.length_sort else _dealt(batching, chunk))
    return steps


def largest_pass(steps: Sequence[StepPlan], cost: Cost) -> int:
    """The padded tokens of the costliest pass of a plan."""
    return max(cost(batch) for step in steps for batches in step.ranks for batch in batches)


def split_passes(batch: Sequence[int], cost: Cost, budget: int | None) -> list[tuple[int, ...]]:
    """A micro-batch as passes of at most `budget` padded tokens each; a record over it goes alone."""
    if not budget:
        return [tuple(batch)]
    passes: list[tuple[int, ...]] = []
    current: tuple[int, ...] = ()
    for place in batch:
        if current and cost((*current, place)) > budget:
            passes.append(current)
            current = ()
        current = (*current, place)
    return [*passes, current]


def split_by_length(batch: Sequence[int], cost: Cost, overhead: int) -> list[tuple[int, ...]]:
    """A micro-batch as the passes that cost least, where one more pass costs as much as `overhead` padded tokens.

    Records are sorted by length and cut, so that a long one does not pad all the others to its length.
    """
    ordered = sorted(batch, key=lambda place: (cost((place,)), place))
    # best[n] is the least cost of the n shortest, and where the last of their passes begins.
    best = [(0, 0)]
    for end in range(1, len(ordered) + 1):
        best.append(min((best[start][0] + cost(ordered[start:end]) + overhead, start) for start in range(end)))
    passes: list[tuple[int, ...]] = []
    end = len(ordered)
    while end:
        start = best[end][1]
        passes.append(tuple(ordered[start:end]))
        end = start
    return passes


def _dealt(batching: Batching, chunk: list[int]) -> StepPlan:
    ranks = []
    for rank in range(batching.world):
        mine = chunk[rank :: batching.world]
        starts = range(0, len(mine), batching.batch)
        ranks.append(tuple(tuple(mine[start : start + batching.batch]) for start in starts))
    return StepPlan(tuple(ranks))


def _balanced(batching: Batching, cost: Cost, chunk: list[int]) -> StepPlan:
    ordered = sorted(chunk, key=lambda place: (cost((place,)), place))
    count = min(batching.accum * batching.world, len(ordered))
    while True:
        runs = _cut(ordered, count, cost)
        largest = max(runs, key=cost)
        if batching.ceiling is None or cost(largest) <= batching.ceiling:
            break
        if len(largest) == 1:
            raise Refused(
                f"record {largest[0] + 1} alone has {cost(largest):,} padded tokens, "
                f"more than pass_tokens_max {batching.ceiling:,}"
            )
        count = min(count + batching.world, len(ordered))
    # Ranks wait for the slowest, so the costliest runs of all ranks go through at the same time.
    runs.sort(key=cost, reverse=True)
    return StepPlan(tuple(tuple(runs[rank :: batching.world]) for rank in range(batching.world)))


def _cut(ordered: list[int], count: int, cost: Cost) -> list[tuple[int, ...]]:
    """`ordered` as `count` contiguous runs whose largest cost is the least possible."""
    low, high = max(cost((place,)) for place in ordered), cost(ordered)
    while low < high:
        middle = (low + high) // 2
        if len(_greedy(ordered, middle, cost)) <= count:
            high = middle
        else:
            low = middle + 1
    runs = _greedy(ordered, low, cost)
    while len(runs) < count:
        widest = max((run for run in runs if len(run) > 1), key=cost)
        place, half = runs.index(widest), len(widest) // 2
        runs[place : place + 1] = [widest[:half], widest[half:]]
    return runs


def _greedy(ordered: list[int], limit: int, cost: Cost) -> list[tuple[int, ...]]:
    return split_passes(ordered, cost, limit)
