"""Only the cells that differ are painted, and only they go to the terminal."""

import itertools

import pyte
import sample_snapshots as samples
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from shown_app import Shown, shown
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

from kevtui.colour_codes import without_repeats
from kevtui.exact_update import TerminalRows
from kevtui.observe.snapshot import Snapshot
from kevtui.widgets.line import Pen, Role, differing


def regions_asked_for(it: Shown, snapshot: Snapshot) -> dict[str, set[Region]]:
    """What each panel wants painted after `snapshot` came, before any of it is."""
    for panel in it.screen.panels:
        panel._exchange_repaint_regions()
    it.screen.show(snapshot)
    return {str(panel.id): set(panel._repaint_regions) for panel in it.screen.panels if panel._repaint_regions}


async def test_a_snapshot_that_says_the_same_paints_nothing() -> None:
    for size in ((160, 50), (120, 40), (80, 24)):
        async with shown(samples.night(), size) as it:
            assert regions_asked_for(it, samples.night()) == {}


async def test_one_step_of_one_trial_paints_a_few_cells_of_its_row() -> None:
    async with shown(samples.night(), (120, 40)) as it:
        regions = regions_asked_for(it, samples.with_step(samples.night(), "r41-27b", 1, 434))
        assert set(regions) == {"studies"}
        (region,) = regions["studies"]
        row = it.screen.studies.row_keys.index("r41-27b/trial-1")
        assert region.y == row + 2, "one line for the border and one for the heading"
        assert region.area <= 4


async def test_what_changes_out_of_sight_paints_nothing() -> None:
    crowd = samples.crowd(200)
    async with shown(crowd, (120, 40)) as it:
        assert regions_asked_for(it, samples.with_step(crowd, "s0190", 0, 1999)) == {}


async def test_twenty_trials_that_report_cost_less_than_the_budget() -> None:
    crowd = samples.crowd(20)
    async with shown(crowd, (120, 60)) as it:
        after = crowd
        for i in range(20):
            after = samples.with_step(after, f"s{i:04}", 0, 900 + i)
        it.screen.show(after)
        sent = sum(map(len, updates(it)))
        assert 0 < sent <= 2000


async def test_a_thousand_trials_paint_no_more_lines_than_are_seen() -> None:
    async with shown(samples.crowd(1000), (120, 40)) as it:
        painted = 0
        studies = it.screen.studies
        paint = studies._visible

        def counting() -> list:  # type: ignore[type-arg]
            nonlocal painted
            lines = paint()
            painted += len(lines)
            return lines

        studies._visible = counting  # type: ignore[method-assign]
        studies.show(samples.crowd(1000))
        assert 0 < painted <= studies.content_size.height


def exactly(update: object, size: Size, console: Console) -> str:
    exact = TerminalRows().exact(update, size)
    assert exact is not None
    return exact.render_segments(console)


def updates(it: Shown) -> list[str]:
    """What would go to the terminal for what is dirty now."""
    console = Console(color_system="truecolor", force_terminal=True)
    compositor = it.screen._compositor
    dirty = {panel for panel in it.screen.panels if panel._repaint_regions}
    compositor.update_widgets(dirty)
    update = compositor.render_partial_update()
    assert isinstance(update, ChopsUpdate)
    return [without_repeats(exactly(update, it.app.size, console))]


def picture(data: list[str], columns: int = 120, lines: int = 60) -> list[list[object]]:
    screen = pyte.Screen(columns, lines)
    stream = pyte.Stream(screen)
    for piece in data:
        stream.feed(piece)
    return [[screen.buffer[y][x] for x in range(columns)] for y in range(lines)]


async def test_an_exact_update_paints_the_same_picture_with_fewer_bytes() -> None:
    crowd = samples.crowd(20)
    async with shown(crowd, (120, 60)) as it:
        console = Console(color_system="truecolor", force_terminal=True)
        compositor = it.screen._compositor
        everything = compositor.render_full_update().render_segments(console)
        after = crowd
        for i in range(20):
            after = samples.with_step(after, f"s{i:04}", 0, 900 + i)
        it.screen.show(after)
        compositor.update_widgets({it.screen.studies})
        update = compositor.render_partial_update()
        assert isinstance(update, ChopsUpdate)
        whole = update.render_segments(console)
        exact = without_repeats(exactly(update, it.app.size, console))
        assert picture([everything, exact]) == picture([everything, whole])
        assert picture([everything, exact]) != picture([everything])
        assert len(exact) * 5 < len(whole)


async def test_a_row_that_the_terminal_shows_already_is_not_printed_again() -> None:
    async with shown(samples.crowd(20), (120, 60)) as it:
        console = Console(color_system="truecolor", force_terminal=True)
        terminal = TerminalRows()
        whole = it.screen._compositor.render_full_update()
        first = terminal.exact(whole, it.app.size)
        again = terminal.exact(it.screen._compositor.render_full_update(), it.app.size)
        assert first is not None and again is not None
        printed = first.render_segments(console)
        assert picture([printed]) == picture([whole.render_segments(console)])
        assert again.render_segments(console) == ""
        terminal.forget()
        assert again.render_segments(console) == printed


async def test_what_was_printed_over_in_part_is_printed_again_in_a_whole_frame() -> None:
    crowd = samples.crowd(20)
    async with shown(crowd, (120, 60)) as it:
        console = Console(color_system="truecolor", force_terminal=True)
        compositor, terminal = it.screen._compositor, TerminalRows()
        sent = []
        for step in (None, 901, 902):
            if step is not None:
                it.screen.show(samples.with_step(crowd, "s0003", 0, step))
                compositor.update_widgets({it.screen.studies})
                partial = terminal.exact(compositor.render_partial_update(), it.app.size)
                assert partial is not None
                sent.append(partial.render_segments(console))
            full = terminal.exact(compositor.render_full_update(), it.app.size)
            assert full is not None
            sent.append(full.render_segments(console))
        now = compositor.render_full_update().render_segments(console)
        assert picture(sent) == picture([now])


codes = st.sampled_from(
    ["\x1b[0m", "\x1b[m", "\x1b[1m", "\x1b[31m", "\x1b[38;2;1;2;3m", "\x1b[48;5;17m", "\x1b[7m", "\x1b[1;4;32m"]
)
moves = st.builds(lambda y, x: f"\x1b[{y};{x}H", st.integers(1, 5), st.integers(1, 20))
words = st.text("ab é", min_size=1, max_size=4)
pieces = st.lists(codes | moves | words | st.just("\n"), max_size=30)


@given(pieces)
def test_leaving_out_repeated_colours_changes_no_cell(stream: list[str]) -> None:
    data = "".join([*stream, "\x1b[0m"])
    shorter = without_repeats(data)
    assert picture([data, "z"], 20, 5) == picture([shorter, "z"], 20, 5)
    assert len(shorter) <= len(data) + 4


lines_of_text = st.lists(st.tuples(st.text(max_size=8), st.sampled_from(Role)), max_size=6)


@given(lines_of_text, lines_of_text, st.integers(0, 40))
def test_cells_outside_the_differing_runs_are_equal(one: list, other: list, width: int) -> None:  # type: ignore[type-arg]
    def line(parts: list[tuple[str, Role]]) -> tuple:  # type: ignore[type-arg]
        pen = Pen(width)
        for text, role in parts:
            pen.add(text, role)
        return pen.line()

    old, new = line(one), line(other)
    runs = differing(old, new, width)
    assert (runs == []) == (differing(new, old, width) == [])
    assert differing(new, new, width) == []
    assert all(0 <= start < end <= width for start, end in runs)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(runs))


plain = st.text("ab─│▓● ", min_size=1, max_size=12)
odd = st.sampled_from(["漢字 a", "a\u0301b", "👍👍", "\u200dzz"])
colours = st.sampled_from([Style(), Style(color="red"), Style(bold=True, bgcolor="#123456"), Style(reverse=True)])
painted = st.lists(st.tuples(plain | odd, colours), min_size=1, max_size=6)


def full_row(parts: list[tuple[str, Style]], width: int) -> Strip:
    return Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(width)


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.tuples(st.integers(0, 29), st.integers(1, 30)), painted)))
def test_whatever_is_painted_over_what_the_terminal_shows_what_was_painted_last(
    updates: list[tuple[int, tuple[int, int] | None, list[tuple[str, Style]]]],
) -> None:
    """A whole row, or the part of it in the given columns, again and again; None stands for the whole."""
    console = Console(color_system="truecolor", force_terminal=True)
    width, terminal, sent, whole = 30, TerminalRows(), [], []
    for y, columns, parts in updates:
        row = full_row(parts, width)
        if columns is None:
            update: LayoutUpdate | ChopsUpdate = LayoutUpdate([[row]], Region(0, y, width, 1))
            plainly = f"\x1b[{y + 1};1H{row.render(console)}"
        else:
            start, stop = columns[0], min(sum(columns), width)
            part = row.crop(start, stop)
            update = ChopsUpdate([{}] * y + [{start: part}], [(y, start, stop)], [[]] * y + [[stop]])
            plainly = f"\x1b[{y + 1};{start + 1}H{part.render(console)}"
        exact = terminal.exact(update, Size(width, 3))
        assert exact is not None
        sent.append(exact.render_segments(console))
        whole.append(plainly)
    assert picture(sent, width, 3) == picture(whole, width, 3)


def test_two_cells_far_apart_are_printed_without_what_lies_between() -> None:
    console = Console(color_system="truecolor", force_terminal=True)
    terminal = TerminalRows()

    def printed(text: str) -> str:
        exact = terminal.exact(LayoutUpdate([[Strip([Segment(text)])]], Region(0, 0, len(text), 1)), Size(len(text), 1))
        assert exact is not None
        return exact.render_segments(console)

    printed("1" + "-" * 40 + "1")
    assert printed("2" + "-" * 40 + "2") == "\x1b[1;1H2\x1b[1;42H2"
