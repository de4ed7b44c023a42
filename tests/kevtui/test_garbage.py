"""Garbage is searched for as a whole in a pause between keys, and at no other moment."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest
import sample_snapshots as samples
from shown_app import PATIENCE, shown

from kevtui import garbage


@pytest.fixture
def searching() -> Iterator[None]:
    """Afterwards this process searches for garbage as before."""
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*before)


def make_due(searches: int) -> None:
    gc.collect()
    for _ in range(searches):
        gc.collect(1)


def test_a_whole_search_that_is_due_waits_for_a_pause_between_keys() -> None:
    make_due(garbage.DUE)
    assert not garbage.sweep(0.0)
    assert garbage.sweep(garbage.PAUSE_S)
    assert gc.get_count()[2] == 0


def test_a_whole_search_is_not_made_where_little_was_left_behind() -> None:
    make_due(0)
    assert not garbage.sweep(garbage.PAUSE_S)


def test_keys_without_a_pause_do_not_put_it_off_for_ever() -> None:
    make_due(garbage.OVERDUE)
    assert garbage.sweep(0.0)


def test_once_all_is_there_python_searches_only_what_is_young_by_itself() -> None:
    code = """
import gc
from kevtui import garbage
gc.disable()
garbage.settle()
whole = []
gc.callbacks.append(lambda phase, info: whole.append(phase) if info["generation"] == 2 else None)
for _ in range(400_000):
    ring = []
    ring.append(ring)
assert gc.isenabled() and gc.get_freeze_count() > 0
assert not whole, whole
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("searching")
async def test_once_something_is_seen_what_the_first_key_opens_is_read_and_stays() -> None:
    opened = "kevtui.screens.opening"
    gc.disable()
    with patch.dict(sys.modules):
        sys.modules.pop(opened, None)
        async with shown(samples.night()) as it:
            for _ in range(PATIENCE):
                if gc.isenabled():
                    break
                await it.pilot.pause(0.01)
            assert gc.isenabled() and opened in sys.modules
