"""What observing costs to load: nothing heavy, and no pydantic for whoever only reads Snapshots or names a target."""

import subprocess
import sys

import pytest


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["kevtui.observe.snapshot", "kevtui.observe.target"])
def test_reading_a_snapshot_and_naming_a_target_load_no_records(module: str) -> None:
    assert not loaded_by(module) & {"pydantic", "watchfiles", "numpy", "textual"}


def test_the_observer_loads_no_screen_nothing_numeric_and_no_watcher_before_it_waits() -> None:
    loaded = loaded_by("kevtui.observe.observer")
    assert "pydantic" in loaded
    assert not loaded & {"numpy", "textual", "rich", "torch", "modal", "grpclib", "watchfiles", "asyncio"}
