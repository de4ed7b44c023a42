"""Cluster resamples as counts: how often each resample holds each cluster.

A statistic that is a function of sums over rows needs no rows, only the sums of each cluster: all resamples of it are
one matrix product with the counts. The counts depend on the seed and on the number of clusters of every source, not
on any answer, so the panels of several arms share them.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from kev.metrics.pairing import Clusters

SAMPLES = 2000
"""Resamples of a registered comparison."""

SEED = 0
DRAWN_AT_ONCE = 2**16
"""Numbers in a block, so that each of its arrays stays in the cache."""

Counts = NDArray[np.unsignedinteger]


class Resamples:
    """`samples` resamples of whole clusters, drawn with replacement within each source.

    Drawn with numpy's default_rng(seed) (PCG64), for each resample source by source, as many clusters as the source
    has. Counts are kept up to `keep_bytes`, since every arm of a round is compared on the same panels.
    """

    def __init__(self, samples: int = SAMPLES, seed: int = SEED, *, keep_bytes: int = 256 * 2**20) -> None:
        self.samples = samples
        self.seed = seed
        self._keep_bytes = keep_bytes
        self._kept: OrderedDict[tuple[int, ...], Counts] = OrderedDict()

    def counts(self, clusters: Clusters) -> Counts:
        """(samples, clusters): how often each resample drew each cluster. Not to be written to."""
        shape = clusters.per_source
        if shape in self._kept:
            self._kept.move_to_end(shape)
            return self._kept[shape]
        counts = draw_counts(shape, self.samples, self.seed)
        self._kept[shape] = counts
        while sum(kept.nbytes for kept in self._kept.values()) > self._keep_bytes and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return counts


def draw_counts(per_source: tuple[int, ...], samples: int, seed: int) -> Counts:
    """The counts of `samples` resamples, in the narrowest of the unsigned types that holds them."""
    total = sum(per_source)
    counts: Counts = np.zeros((samples, total), dtype=np.uint8)
    draws = Draws(per_source, seed)
    batch = max(1, DRAWN_AT_ONCE // max(1, total))
    for start in range(0, samples, batch):
        for row, clusters in enumerate(draws.take(min(batch, samples - start)), start=start):
            times = np.bincount(clusters, minlength=total)
            if times.max(initial=0) > np.iinfo(counts.dtype).max:
                counts = counts.astype(np.uint32)
            counts[row] = times
    return counts


class Draws:
    """Cluster numbers, resample after resample: `default_rng(seed).integers(0, k, size=k)` of source after source.

    Called once per source and resample, numpy spends more on the call than on the numbers. So its algorithm is
    applied to a block at a time: every number is the upper half of a 32-bit word of PCG64 times k, and a word whose
    lower half falls short of 2**32 mod k is passed over (D. Lemire, Fast Random Integer Generation in an Interval,
    2019). A source of one cluster uses no word.
    """

    def __init__(self, per_source: tuple[int, ...], seed: int) -> None:
        sizes = np.repeat(np.array(per_source, dtype=np.uint64), per_source)
        self._first = np.repeat(np.cumsum((0, *per_source))[:-1], per_source)
        self._drawn = np.flatnonzero(sizes > 1)
        self._sizes = sizes[self._drawn]
        self._passed_over = ((2**32 - self._sizes) % self._sizes).astype(np.uint32)
        self._bits = np.random.default_rng(seed).bit_generator
        self._words = np.zeros(0, np.uint32)

    def take(self, samples: int) -> NDArray[np.intp]:
        """(samples, clusters): the cluster numbers of the next resamples, in the order drawn."""
        words = self._next_words(samples * len(self._sizes))
        while True:
            wide = words.reshape(samples, -1) * self._sizes
            short = np.flatnonzero(wide.astype(np.uint32) < self._passed_over)
            if not len(short):
                break
            # Rare (k in 2**32 words), and every later word moves up by one, so the block is done again.
            words = np.concatenate([np.delete(words, short[0]), self._next_words(1)])
        numbers = (wide >> np.uint64(32)).astype(np.intp)
        if len(self._drawn) == len(self._first):
            return np.asarray(numbers + self._first)
        out = np.tile(self._first, (samples, 1))
        out[:, self._drawn] += numbers
        return out

    def _next_words(self, n: int) -> NDArray[np.uint32]:
        fresh = self._bits.random_raw((max(0, n - len(self._words)) + 1) // 2)
        # A 64-bit word is handed out as two halves, the lower one first.
        halves = np.asarray(fresh, dtype="<u8").view("<u4")
        words = np.concatenate([self._words, halves]).astype(np.uint32, copy=False)
        self._words = words[n:]
        return words[:n]
