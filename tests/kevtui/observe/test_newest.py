"""The newest figures are kept, in their order, in little memory."""

import tracemalloc
from collections import deque
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from kevtui.observe.derive import Sample
from kevtui.observe.newest import SAMPLE_EVERY_S, NewestFigures, NewestSamples

GAPS = some.lists(some.tuples(some.floats(0.01, 20), some.integers(1, 50)), max_size=60)


@given(some.lists(some.floats(allow_nan=False), max_size=40), some.integers(1, 10))
def test_of_figures_the_newest_are_kept_in_their_order(figures: list[float], most: int) -> None:
    newest = NewestFigures(most)
    for figure in figures:
        newest.append(figure)
    assert list(newest) == list(deque(figures, most)) and len(newest) == min(most, len(figures))
    if figures:
        assert newest.oldest == figures[-most:][0]
    newest.clear()
    assert list(newest) == []


@given(GAPS, some.integers(3, 10))
def test_samples_are_some_seconds_apart_and_the_last_is_the_newest(gaps: list[tuple[float, int]], most: int) -> None:
    newest, t, step = NewestSamples(most), 0.0, 0
    for seconds, steps in gaps:
        t, step = t + seconds, step + steps
        newest.append(Sample(t, step))
    kept = list(newest)
    assert newest.last == (Sample(t, step) if gaps else None) and bool(newest) == bool(gaps)
    assert len(kept) <= most and kept == sorted(kept, key=lambda sample: sample.t)
    # The newest two may still be nearer: the next one takes the place of the last.
    assert all(later.t - earlier.t >= SAMPLE_EVERY_S for earlier, later in pairwise(kept[:-1]))
    newest.clear()
    assert not newest and newest.last is None and list(newest) == []


def test_a_hundred_samples_take_less_memory_than_thirty_objects() -> None:
    newest = NewestSamples(100)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    objects = [Sample(float(n), 10**6 + n) for n in range(30)]
    thirty = tracemalloc.get_traced_memory()[0] - before
    for n in range(100):
        newest.append(Sample(10.0 * n, 10**6 + n))
    hundred = tracemalloc.get_traced_memory()[0] - before - thirty
    tracemalloc.stop()
    assert len(objects) == 30 and hundred < thirty
