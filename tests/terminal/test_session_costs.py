"""What the dashboard costs over a real session's files: bytes to the terminal, and CPU time. No wall time."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal
from session_files import SessionFiles

Start = Callable[..., PseudoTerminal]


@pytest.fixture
def still(tmp_path: Path) -> SessionFiles:
    """A session in which nothing moves any more."""
    # Days ago, where an age of seconds would rightly tick.
    session = SessionFiles(tmp_path, metered_at=datetime.now(UTC) - timedelta(days=3)).write()
    session.age()
    return session


@pytest.fixture
def settled(still: SessionFiles, dashboard: Start) -> Iterator[PseudoTerminal]:
    with dashboard(still.root) as terminal:
        terminal.wait_for("study-001/1")
        terminal.wait_until_quiet(2.0)
        yield terminal


def test_nothing_moving_writes_nothing_and_costs_next_to_nothing(settled: PseudoTerminal) -> None:
    seen = settled.observe(12)
    assert seen.written == 0
    assert seen.cpu_percent < 1.0


def test_sessions_that_nobody_looks_at_write_nothing_and_cost_next_to_nothing(
    still: SessionFiles, dashboard: Start
) -> None:
    with dashboard(still.root, str(still.root)) as terminal:
        terminal.wait_for("study-001/1")
        terminal.wait_for("[1 ")
        terminal.wait_until_quiet(3.0)
        seen = terminal.observe(12)
        assert seen.written == 0
        assert seen.cpu_percent < 1.0


def test_one_step_repaints_cells_and_not_panels(still: SessionFiles, settled: PseudoTerminal) -> None:
    written = len(settled.raw)
    still.step(0, 1, 407)
    settled.wait_for("407/")
    settled.wait_until_quiet(1.5)
    # The first change also turns ages of days into ages of seconds; what comes after is the usual case.
    assert len(settled.raw) - written < 6_000
    written = len(settled.raw)
    still.step(0, 1, 408)
    settled.wait_for("408/")
    settled.wait_until_quiet(1.0)
    assert len(settled.raw) - written < 2_000


def test_a_key_that_moves_the_cursor_repaints_rows_and_not_the_screen(settled: PseudoTerminal) -> None:
    written = len(settled.raw)
    settled.press("j")
    settled.wait_for(lambda: len(settled.raw) > written)
    settled.wait_until_quiet(1.0)
    assert len(settled.raw) - written < 8_000


def test_a_line_appended_to_an_open_log_repaints_its_row(still: SessionFiles, settled: PseudoTerminal) -> None:
    settled.press("l")
    settled.wait_for("following")
    settled.wait_until_quiet(1.5)
    for number in range(8):
        with still.log(0, 0).open("a") as stream:
            stream.write(f"a line without a step, number {number}\n")
        settled.wait_for(f"number {number}")
    settled.wait_until_quiet(1.5)
    written = len(settled.raw)
    for number in range(8, 12):
        with still.log(0, 0).open("a") as stream:
            stream.write(f"a line without a step, number {number}\n")
        settled.wait_for(f"number {number}")
    assert len(settled.raw) - written < 4 * 2_000


def test_a_storm_of_sizes_is_survived_and_the_screen_right_after_it(settled: PseudoTerminal) -> None:
    whole = settled.text
    order = random.Random(7)
    sizes = [(1, 1), (500, 200), (1, 200), (500, 1), (2, 2), (80, 24)]
    sizes += [(order.randint(1, 500), order.randint(1, 200)) for _ in range(20)]
    for columns, rows in sizes:
        settled.resize(columns, rows)
        settled.read(0.05)
    settled.resize(1, 1)
    settled.wait_until_quiet(1.0)
    settled.resize(120, 40)
    settled.wait_for(lambda: settled.text == whole)
    assert settled.process.poll() is None


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_the_size_it_starts_in_does_not_matter(still: SessionFiles, dashboard: Start, size: tuple[int, int]) -> None:
    with dashboard(still.root, columns=size[0], rows=size[1]) as terminal:
        terminal.wait_for("study-000/0")
        terminal.press("q")
        assert terminal.wait_for_exit() == 0


def test_a_terminal_that_answers_nothing_delays_nothing(still: SessionFiles, dashboard: Start) -> None:
    with dashboard(still.root, answers="silent") as terminal:
        terminal.wait_for("study-001/1")
        assert b"\x1b[?2026h" not in terminal.raw
        terminal.wait_until_quiet(2.0)
        assert terminal.observe(5).written == 0


def test_it_ends_with_its_terminal(still: SessionFiles, dashboard: Start) -> None:
    with dashboard(still.root, ignore_hangup=True) as terminal:
        terminal.wait_for("study-001/1")
        terminal.hang_up()
        assert terminal.wait_for_exit(deadline_s=10) == 129


def test_watching_leaves_no_trace_on_the_disk(still: SessionFiles, dashboard: Start) -> None:
    def listing() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in still.root.rglob("*")}

    before = listing()
    # One that may act takes control of the session, which is a file; one that only looks writes nothing at all.
    with dashboard(still.root, "--read-only") as terminal:
        terminal.wait_for("study-001/1")
        terminal.press("l")
        terminal.wait_for("following")
        terminal.press("q")
        assert terminal.wait_for_exit() == 0
    assert listing() == before


def test_what_opens_over_the_panels_and_closes_costs_no_more_than_painting_the_screen(settled: PseudoTerminal) -> None:
    def written(key: str) -> int:
        before = len(settled.raw)
        settled.press(key)
        settled.wait_for(lambda: len(settled.raw) > before)
        settled.wait_until_quiet(1.0)
        return len(settled.raw) - before

    panels = written("\x0c")
    opened = written("?")
    assert "escape closes" in settled.text
    assert opened <= 1.2 * written("\x0c")
    assert written("\x1b") <= 1.2 * panels
    assert "escape closes" not in settled.text
