"""Each alert is told once, again only after a while and with a count, at once where it is graver, never where known."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kevtui.alerting.book import SETTLE_S, AlertBook
from kevtui.observe.snapshot import Alert, Severity

AGAIN_S = 900.0
SLOWED = Alert("slowed", Severity.WARNING, "s/trial-0", "slowed")
LOST = Alert("loss-not-finite", Severity.WARNING, "s/trial-0", "lost", condition="step 7")


def book(*, begun: bool = True) -> AlertBook:
    made = AlertBook(lambda kind: 60.0 if kind == "silent" else AGAIN_S)
    if begun:
        made.take((), 0.0)
    return made


def told(made: AlertBook, now: float, *alerts: Alert) -> list[tuple[str, int]]:
    return [(news.alert.id, news.repeats) for news in made.take(alerts, now)]


def test_what_was_there_when_the_dashboard_opened_is_not_told_and_what_comes_after_it_is() -> None:
    made = book(begun=False)
    assert told(made, 0, SLOWED) == []
    assert told(made, 5, SLOWED, LOST) == [(LOST.id, 0)]
    assert told(made, 10, SLOWED, LOST) == []


def test_one_that_comes_back_is_counted_and_told_again_only_after_a_while() -> None:
    made = book()
    assert told(made, 0, SLOWED) == [(SLOWED.id, 0)]
    for number in range(1, 4):
        assert told(made, number * 100 - 50) == []
        assert told(made, number * 100, SLOWED) == []
    assert not made.settled
    assert told(made, AGAIN_S - 1, SLOWED) == []
    assert told(made, AGAIN_S, SLOWED) == [(SLOWED.id, 2)]
    assert made.settled


def test_a_kind_may_have_a_while_of_its_own() -> None:
    made = book()
    silent = Alert("silent", Severity.WARNING, "s/trial-0", "nothing logged")
    assert told(made, 0, silent) == [(silent.id, 0)]
    assert told(made, 30) == []
    assert told(made, 61, silent) == [(silent.id, 0)]


def test_what_becomes_graver_is_told_at_once_and_wavering_between_two_severities_is_not() -> None:
    made = book()
    grave = replace(LOST, severity=Severity.CRITICAL)
    assert told(made, 0, LOST) == [(LOST.id, 0)]
    assert told(made, 1, grave) == [(LOST.id, 0)]
    for number in range(2, 40, 2):
        assert told(made, number, LOST) == []
        assert told(made, number + 1, grave) == []
    assert told(made, AGAIN_S + 1, grave) == [(LOST.id, 18)]


def test_what_is_acknowledged_is_not_told_until_it_is_another_condition_or_graver() -> None:
    for change in ({"condition": "step 90"}, {"severity": Severity.CRITICAL}):
        made = book()
        made.acknowledge(LOST)
        assert told(made, 0, LOST) == []
        assert told(made, AGAIN_S, LOST) == []
        assert [alert.acknowledged for alert in made.marked((LOST,))] == [True]
        other = replace(LOST, **change)
        assert [alert.acknowledged for alert in made.marked((other,))] == [False]
        assert told(made, AGAIN_S + 1, other) == [(LOST.id, 0)], change


def test_an_acknowledgement_is_over_with_the_alert_and_not_with_a_moment_without_it() -> None:
    made = book()
    made.acknowledge(LOST)
    assert told(made, 0, LOST) == []
    assert told(made, 10) == []
    assert made.standing == (LOST,)
    assert told(made, 20, LOST) == []
    assert told(made, 30) == []
    assert told(made, 20 + SETTLE_S) == []
    assert made.standing == ()
    assert told(made, 2 * AGAIN_S, LOST) == [(LOST.id, 0)]


def test_what_the_file_says_is_acknowledged_is_not_told() -> None:
    made = book()
    assert told(made, 0, replace(LOST, acknowledged=True)) == []
    assert told(made, 1, LOST) == []
    assert made.marked((SLOWED,)) == (SLOWED,)


def test_everything_is_shown_again_once_it_is_withdrawn() -> None:
    made = book()
    made.acknowledge(LOST)
    alerts = (LOST, SLOWED)
    assert [alert.id for alert in made.marked(alerts)] == [SLOWED.id, LOST.id]
    assert made.marked(alerts) is made.marked(alerts)
    made.withdraw()
    assert made.marked(alerts) is alerts


@given(st.lists(st.tuples(st.floats(0.1, 40), st.booleans()), max_size=200))
def test_however_an_alert_flaps_it_is_told_at_most_once_in_a_while_and_no_raise_is_uncounted(
    flaps: list[tuple[float, bool]],
) -> None:
    made = book()
    now, was_here, raises, moments, counted = 0.0, False, 0, [], 0
    for passed, is_here in flaps:
        now += passed
        raises += is_here and not was_here
        was_here = is_here
        for _, repeats in told(made, now, *([SLOWED] if is_here else [])):
            moments.append(now)
            counted += repeats + 1
    assert all(b - a >= AGAIN_S for a, b in pairwise(moments))
    assert counted <= raises and (not raises or counted >= 1)
    for passed in (AGAIN_S, AGAIN_S):
        now += passed
        counted += sum(repeats + 1 for _, repeats in told(made, now, SLOWED))
        was_here or (raises := raises + 1)
        was_here = True
    assert counted == raises


@pytest.mark.parametrize("number", [1, 500])
def test_what_is_long_over_is_forgotten(number: int) -> None:
    made = book()
    alerts = [replace(SLOWED, subject=f"s{i}") for i in range(number)]
    assert len(told(made, 0, *alerts)) == number
    told(made, SETTLE_S)
    told(made, AGAIN_S)
    assert len(made._entries) == 0
