"""Random choices that come out the same on every platform and every version of Python."""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def derive_seed(seed: int, name: str) -> int:
    """A seed of its own for each named purpose: the first 8 bytes, big-endian, of sha256 of `<seed>:<name>`."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big")


class Draw:
    """A stream of random choices, fixed by a seed and a name.

    Everything is built on `random.Random.random`, the one method whose stream Python promises to keep;
    `choice`, `shuffle` and `sample` have changed between versions and would change frozen bytes with them.
    """

    def __init__(self, seed: int, name: str) -> None:
        self._random = random.Random(derive_seed(seed, name)).random

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound - 1`. `bound` must be positive and far under 2**53."""
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different positions of `items`, in random order."""
        return self.shuffled(items)[:count]
