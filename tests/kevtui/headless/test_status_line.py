"""A session in one line: what stays when it gets narrow, and what tmux may be told."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kevtui.headless.status_line import render
from kevtui.headless.styled import width_of
from kevtui.observe.snapshot import Alert, Arm, Money, Readout, Severity, Snapshot, Watcher, WatcherState
from tests.kevtui.sample_snapshots import calm, hostile, night


def named(name: str) -> Snapshot:
    return replace(night(), session=name)


def test_the_line_says_name_money_trials_and_the_gravest_alert() -> None:
    line = render(night())
    assert line.startswith("✗ night-7")
    assert "headroom" in line and "running" in line and "2 alerts" in line
    assert "timed out at step 1210" in line
    assert "projected 12 min" not in line


@given(st.integers(1, 200))
def test_no_width_is_ever_passed(width: int) -> None:
    for snapshot in (night(), calm(), hostile(), named("夜" * 40)):
        assert width_of(render(snapshot, width=width)) <= width


@pytest.mark.parametrize("width", [30, 60, 90, 120])
def test_a_narrow_line_drops_whole_parts_and_keeps_the_name_and_what_was_spent(width: int) -> None:
    whole = render(night()).split(" · ")
    narrow = render(night(), width=width).split(" · ")
    assert narrow[:2] == whole[:2]
    kept = [part for part in narrow if not part.endswith("…")]
    assert kept == [part for part in whole if part in kept]


def test_what_is_not_known_is_shown_as_such() -> None:
    assert "– of $500" in render(calm())


def test_money_that_is_simulated_says_so_wherever_it_is_shown() -> None:
    money = Money(authorization=Decimal(60), spent=Decimal("1.25"), headroom=Decimal(50), simulated=True)
    snapshot = replace(night(), money=money)
    for width in range(1, 120):
        line = render(snapshot, width=width)
        assert ("$1.25" in line) <= ("simulated" in line)


def test_a_sample_is_called_one() -> None:
    assert "SAMPLE" in render(replace(night(), sample=True), width=24)


def test_a_watcher_that_is_down_and_a_candidate_are_told_early() -> None:
    down = replace(night(), watcher=Watcher(WatcherState.DOWN, 600.0, "runs/r41.watch.json"))
    assert "watcher down 10 min" in render(down, width=60)
    chosen = replace(night(), readout=Readout(arms=(Arm("9b-a", "9b"),), candidates=(("9b", "9b-a"), ("4b", None))))
    assert "candidate 9b-a" in render(chosen, width=200)


def test_file_text_cannot_act_on_a_terminal_or_on_tmux() -> None:
    name = "#(touch /tmp/x) #[fg=red] #{host} %H \x1b]0;t\x07"
    alert = Alert("x", Severity.CRITICAL, name, name)
    line = render(replace(named(name), alerts=(alert,)), tmux=True)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)
    assert "%" not in line
    # Every "#" is either one of ours, which begins a style we know, or doubled.
    rest = re.sub(r"#\[(?:fg=(?:red,bold|yellow)|default)\]", "", line)
    assert "#" in rest and "#" not in rest.replace("##", "")


def test_ascii_is_ascii() -> None:
    assert render(night(), ascii_only=True).isascii()
