"""Snapshots come one at a time, without delay when they are few and at a steady pace when they are many."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
import sample_snapshots as samples

from kev.errors import KevError, NotFound
from kevtui.app import KevApp
from kevtui.feed import BURST, INTERVAL_S, UNFOCUSED, Pace

REPOSITORY = Path(__file__).parent.parent.parent


class HandClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_few_changes_are_not_delayed_and_many_keep_the_pace() -> None:
    clock = HandClock()
    pace = Pace(clock)
    assert [pace.delay_s() for _ in range(BURST)] == [0.0] * BURST
    shown_at = []
    for _ in range(20):
        clock.seconds += 0.05
        clock.seconds += pace.delay_s()
        shown_at.append(clock.seconds)
    gaps = [later - earlier for earlier, later in itertools.pairwise(shown_at)]
    assert all(gap == pytest.approx(INTERVAL_S) for gap in gaps[1:])


def test_after_a_quiet_time_a_change_is_shown_at_once_again() -> None:
    clock = HandClock()
    pace = Pace(clock)
    for _ in range(10):
        clock.seconds += pace.delay_s()
    clock.seconds += 60
    assert pace.delay_s() == 0.0


def test_without_the_focus_the_pace_is_halved() -> None:
    clock = HandClock()
    pace = Pace(clock)
    pace.factor = UNFOCUSED
    for _ in range(BURST):
        pace.delay_s()
    assert pace.delay_s() == pytest.approx(UNFOCUSED * INTERVAL_S)


@pytest.mark.parametrize("error", [NotFound("r99.json: no such round"), ZeroDivisionError("a defect")])
async def test_what_the_source_raises_ends_the_screen_and_is_kept(error: Exception) -> None:
    def open_source() -> samples.HeldSource:
        raise error

    app = KevApp(open_source, title="r99")
    async with app.run_test() as pilot:
        for _ in range(500):
            if not app.is_running:
                break
            await pilot.pause(0.01)
    assert app.failure is error
    assert app.return_code == 1
    assert isinstance(error, KevError) == isinstance(app.failure, KevError)


HEAVY = {"torch", "transformers", "modal", "numpy", "grpclib", "pydantic", "orjson", "watchfiles"}


def test_the_screen_is_imported_without_anything_heavy() -> None:
    code = "import sys, kevtui.app; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    loaded = set(done.stdout.split())
    assert "textual" in loaded
    assert not loaded & HEAVY


def test_a_session_is_shown_before_anything_is_loaded_that_reads_records(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "night-state.json").write_text('{"session": "night"}')
    code = """if True:
        import sys
        from kevtui import app, cli, session_command
        session_command.no_screen = lambda output: ""
        app.run = lambda *_, **__: print(*sys.modules) or 0
        sys.exit(cli.main(["session", "night", "--root", sys.argv[1]]))"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    loaded = set(done.stdout.split())
    assert "kevtui.dashboard" in loaded
    assert not loaded & {"torch", "numpy", "pydantic", "zipfile", "kevtui.replay.night"}
