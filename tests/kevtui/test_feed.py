"""Snapshots come one at a time, without delay when they are few and at a steady pace when they are many."""

import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import shown

from kev.errors import KevError, NotFound
from kevtui.app import KevApp
from kevtui.feed import BURST, INTERVAL_S, LISTEN_S, SILENT_AFTER, UNFOCUSED, Pace, Silence

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


def test_only_looks_in_vain_one_after_another_are_a_silence() -> None:
    silence = Silence()
    assert [silence.look(heard) for heard in (1, 1, 2, 2, 3, *[3] * (SILENT_AFTER - 1))] == [0.0] * (SILENT_AFTER + 4)
    assert silence.look(3) == SILENT_AFTER * LISTEN_S
    assert silence.look(3) == (SILENT_AFTER + 1) * LISTEN_S
    assert silence.look(4) == 0.0


async def test_a_source_that_hangs_is_told_in_the_header_and_no_longer_once_it_answers() -> None:
    async with shown(samples.calm()) as screen:
        for _ in range(SILENT_AFTER):
            screen.app.listen()
            await screen.pilot.pause()
            assert "no answer" not in screen.lines()[0]
        screen.app.listen()
        await screen.pilot.pause()
        assert "no answer for 20 s" in screen.lines()[0]
        await screen.arrives(samples.night())
        assert "no answer" not in screen.lines()[0]


async def test_a_source_that_never_answered_is_told_too() -> None:
    answered = threading.Event()

    def open_source() -> samples.HeldSource:
        answered.wait(60)
        return samples.HeldSource(samples.calm())

    app = KevApp(open_source, title="r99")
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(SILENT_AFTER):
            app.listen()
        await pilot.pause()
        first = app.screen._compositor.render_strips()[0].text
        assert "r99" in first and "no answer for 20 s" in first
        answered.set()


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
