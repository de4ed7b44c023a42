"""A figure is called unusual once, when it lastingly left what is usual for it, and never for its noise."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from kevtui.observe.health import FINITE_AGAIN, SLOW, SLOW_BACK, Health
from kevtui.observe.usual import LEAST, RECENT, Usual

SETTLED = LEAST + RECENT + 15


def told(values: list[float], usual: Usual) -> list[bool]:
    """Whether it was called unusual, after each of `values`."""
    said = []
    for number, value in enumerate(values):
        usual.add(value, number)
        said.append(usual.departure is not None)
    return said


def turns(said: list[bool]) -> int:
    """How often it began or ended."""
    return sum(a != b for a, b in pairwise([False, *said]))


def slow() -> Usual:
    return Usual(limit=SLOW, back=SLOW_BACK)


@given(st.lists(st.floats(0.7, 1.3), min_size=1, max_size=300), st.floats(1e-3, 1e3))
def test_noise_of_three_tenths_is_never_called_unusual(noise: list[float], level: float) -> None:
    assert not any(told([level * factor for factor in noise], slow()))


@given(
    st.lists(st.floats(0.85, 1.15), min_size=SETTLED, max_size=120),
    st.lists(st.floats(0.85, 1.15), min_size=RECENT, max_size=120),
    st.lists(st.floats(0.85, 1.15), min_size=RECENT, max_size=60),
    st.floats(0.05, 0.35),
)
def test_a_lasting_fall_is_told_once_and_ends_once(
    before: list[float], during: list[float], after: list[float], fall: float
) -> None:
    said = told([*before, *(fall * factor for factor in during), *after], slow())
    assert not any(said[: len(before)])
    assert said[len(before) + RECENT // 2 + 1]
    assert turns(said) == 2 and not said[-1]


@given(st.lists(st.booleans(), max_size=200))
@example([True] * 200)
def test_two_pauses_among_any_five_figures_change_nothing(wished: list[bool]) -> None:
    values = [1.0] * SETTLED
    for pause in wished:
        values.append(0.001 if pause and values[1 - RECENT :].count(0.001) < 2 else 1.0)
    assert not any(told(values, slow()))


def test_a_slow_beginning_and_a_slow_warm_up_are_not_told() -> None:
    assert not any(told([0.01] * 15 + [1.0] * 100, slow()))
    assert not any(told([1.0] * (LEAST - 1) + [0.01] * RECENT, slow()))


def test_what_was_usual_is_what_it_was_before_however_long_it_lasts() -> None:
    usual = slow()
    said = told([1.0] * 40 + [0.2] * 500, usual)
    assert said[-1] and usual.departure is not None
    assert (usual.departure.usual, usual.departure.recent) == (1.0, 0.2)


def test_short_intervals_are_taken_together_and_a_clock_set_back_begins_anew() -> None:
    health = Health()
    for number in range(4000):
        health.at_step(number * 0.05, number, least_s=5.0)
    for number in range(100):
        health.at_step(200 + number * 6.0, 4000 + number, least_s=5.0)
    assert health.slowing is not None
    assert 1150 < health.slowing.usual < 1250 and 9 < health.slowing.steps_per_minute < 11
    health.at_step(3.0, 50, least_s=5.0)
    assert health.slowing is None


def test_a_loss_that_is_no_number_is_told_until_enough_of_them_are_numbers_again() -> None:
    health = Health()
    health.loss(7, lost=True)
    health.loss(8, lost=True)
    assert [(d.figure, d.since_step, d.lasting) for d in health.divergences] == [("loss", 7, True)]
    for number in range(FINITE_AGAIN - 1):
        health.loss(9 + number, lost=False)
        assert [(d.since_step, d.lasting) for d in health.divergences] == [(7, False)]
    health.loss(99, lost=False)
    assert health.divergences == ()


def test_an_exploding_gradient_is_told_and_a_single_large_one_is_not() -> None:
    health = Health()
    for number in range(60):
        health.gradient(number, 1.0 if number % 20 else 500.0)
    assert health.divergences == ()
    for number in range(60, 63):
        health.gradient(number, 50.0)
    assert [(d.figure, d.value, d.usual) for d in health.divergences] == [("gradient norm", 50.0, 1.0)]
    for number in range(63, 70):
        health.gradient(number, float("inf"))
    assert [(d.value, d.usual) for d in health.divergences] == [(None, 1.0)]


def test_a_lost_loss_in_a_line_that_is_no_json_is_over_where_later_lines_have_one() -> None:
    line = b'{"step": 12, "loss": -Infinity}'
    for newest, lasting in ((None, [True]), (12, [True]), (11, [True]), (15, [False]), (12 + FINITE_AGAIN, [])):
        health = Health()
        health.damaged(line, newest=newest)
        assert [divergence.lasting for divergence in health.divergences] == lasting, newest
    health = Health()
    health.damaged(b'{"step": 12, "loss": 1.0, "note": "NaN"', newest=None)
    assert health.divergences == ()
