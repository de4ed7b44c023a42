"""Curves as text, and the panel that shows them."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from kevtui.observe.snapshot import Point, Trial, TrialState
from kevtui.plotting import SMALLEST, TICK_WIDTH, figure, plot
from kevtui.widgets.plot import PlotPanel, curves_of

numbers = st.floats(allow_nan=True, allow_infinity=True)
samples = st.lists(st.tuples(numbers, st.none() | numbers), max_size=40)


def curve(rows: list[str]) -> list[str]:
    """The area of the curve alone, without axes."""
    return [row[TICK_WIDTH + 1 :] for row in rows[1:-2]]


def columns_with_dots(rows: list[str]) -> set[int]:
    return {x for row in curve(rows) for x, character in enumerate(row) if character not in " "}


@given(samples, st.integers(0, 120), st.integers(0, 40), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_samples_fill_exactly_the_room_given(
    points: list[tuple[float, float | None]], width: int, height: int, ascii_only: bool
) -> None:
    rows = plot(points, width, height, x="step", y="steps/min", ascii_only=ascii_only)
    assert len(rows) == (height if width else 0)
    assert all(len(row) == width for row in rows)
    assert not ascii_only or "".join(rows).isascii()


@given(numbers)
def test_a_figure_fits_its_axis(value: float) -> None:
    if math.isfinite(value) and abs(value) < 1e308:
        text = figure(value)
        assert len(text) <= TICK_WIDTH
        assert float(text) == pytest.approx(value, rel=0.5 if "e" in text else 0.06, abs=1e-300)


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_the_scale_spans_the_finite_values_and_ignores_the_rest(low: float, high: float) -> None:
    rows = plot([(0, low), (1, math.nan), (2, math.inf), (3, -math.inf), (4, high)], 40, 10, x="step", y="")
    if low != high:
        assert rows[1][:TICK_WIDTH].strip() == figure(max(low, high))
        assert rows[-3][:TICK_WIDTH].strip() == figure(min(low, high))


def test_a_gap_stays_a_gap() -> None:
    line = [(float(x), 1.0 + x) for x in range(101)]
    broken = [(at, None if 40 <= at <= 60 else value) for at, value in line]
    whole = columns_with_dots(plot(line, 60, 10, x="step", y="", ascii_only=True))
    assert whole == set(range(60 - TICK_WIDTH - 1))
    gap = whole - columns_with_dots(plot(broken, 60, 10, x="step", y="", ascii_only=True))
    assert 8 <= len(gap) <= 12 and gap == set(range(min(gap), max(gap) + 1))


def test_a_rising_curve_goes_from_the_bottom_left_to_the_top_right() -> None:
    rows = curve(plot([(0, 0.0), (10, 5.0)], 30, 12, x="step", y="", ascii_only=True))
    positions = [min(x for x, sign in enumerate(row) if sign == "*") for row in rows]
    assert positions == sorted(positions, reverse=True)
    assert positions[-1] == 0


def test_the_axes_carry_their_units() -> None:
    rows = plot([(0, 6.0), (120, 7.9)], 50, 10, x="min", y="step rate, steps/min")
    assert rows[0].rstrip() == "step rate, steps/min" and rows[-1].endswith("120 min")
    assert rows[1].split("┤")[0].strip() == "7.9"


def test_no_figures_and_no_room_are_said_in_words() -> None:
    assert "no figures yet" in "".join(plot([(0, None), (1, math.nan)], 40, 9, x="step", y=""))
    assert "2.5 loss" in "".join(plot([(0, 2.5)], SMALLEST[0], SMALLEST[1] - 1, x="step", y="loss"))


@given(st.integers(2, 3000))
@settings(max_examples=20, deadline=None)
def test_many_points_lose_no_extreme(count: int) -> None:
    spike = count // 2
    rows = plot([(i, 100.0 if i == spike else 0.0) for i in range(count)], 40, 12, x="step", y="", ascii_only=True)
    assert "*" in curve(rows)[0]


def trial(*points: Point, note: str = "") -> Trial:
    return Trial("study", "trial-0", 0, TrialState.RUNNING, points=points, rate_note=note)


def test_a_log_without_a_clock_is_drawn_over_steps_and_says_why_it_has_no_rate() -> None:
    rate, loss = curves_of(trial(Point(10, 2.0), Point(20, 1.5), note="this log has no clock"))
    assert rate.reason == "this log has no clock" and not rate.samples
    assert loss.x == "step" and loss.samples == ((10.0, 2.0), (20.0, 1.5))


def test_timed_points_are_drawn_over_time_in_a_natural_unit() -> None:
    rate, _ = curves_of(trial(Point(10, 2.0, at_s=0.0), Point(20, 1.5, at_s=7200.0, steps_per_minute=7.0)))
    assert rate.x == "min" and rate.samples == ((0.0, None), (120.0, 7.0))


class PlotApp(App[None]):
    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.ascii_only = ascii_only

    def compose(self) -> ComposeResult:
        yield PlotPanel(ascii=self.ascii_only)


def painted(app: App[None]) -> str:
    panel = app.query_one(PlotPanel)
    return "\n".join(panel.render_line(y).text for y in range(panel.size.height))


MOVING = tuple(Point(s, 3.0 - s / 50, at_s=s * 9.0, steps_per_minute=6.0 + s % 3) for s in range(100))


@pytest.mark.parametrize("size", [(80, 24), (90, 8), (40, 8), (160, 50)])
async def test_the_panel_draws_what_fits(size: tuple[int, int]) -> None:
    app = PlotApp()
    async with app.run_test(size=size):
        app.query_one(PlotPanel).show(trial(*MOVING))
        text = painted(app)
        assert "step rate" in text and "steps/min" in text
        assert ("loss" in text) == (size != (40, 8))


async def test_the_panel_repaints_only_when_the_curves_change(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PlotApp(ascii_only=True)
    async with app.run_test(size=(80, 24)):
        panel = app.query_one(PlotPanel)
        assert "no trial chosen" in painted(app)
        refreshes: list[object] = []
        monkeypatch.setattr(panel, "refresh", lambda *regions, **_: refreshes.append(regions))
        panel.show(trial(*MOVING))
        panel.show(trial(*MOVING))
        assert len(refreshes) == 1 and painted(app).isascii()
        panel.show(trial(*MOVING, Point(101, 1.0, at_s=909.0)))
        assert len(refreshes) == 2
        panel.show(trial(note="no step line yet –"))
        assert "no step line yet \\u2013" in painted(app)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (500, 200)])
async def test_any_size_is_survived(size: tuple[int, int]) -> None:
    app = PlotApp()
    async with app.run_test(size=size) as pilot:
        app.query_one(PlotPanel).show(trial(*MOVING))
        await pilot.pause()
        assert all(len(row) == size[0] for row in painted(app).split("\n"))
