"""Lines tell each change once, with its moment, in words that last."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from kev.clock import SystemClock
from kevtui.headless.output import Output
from kevtui.headless.plain import LOOK_EVERY_S, PACE_S, SUMMARY_EVERY_S, Teller, follow
from kevtui.observe.snapshot import LeaseState, Snapshot, TrialState


def told(teller: Teller, snapshot: Snapshot, monotonic: float) -> list[str]:
    """The lines without their moments."""
    return [line.split(" ", 1)[1] for line in teller.tell(snapshot, monotonic)]


def with_trial(snapshot: Snapshot, **changes: object) -> Snapshot:
    first, *others = snapshot.studies
    trial = replace(first.trials[0], **changes)
    return replace(snapshot, studies=(replace(first, trials=(trial,)), *others))


def test_the_first_look_tells_everything_and_sums_it_up(snapshot: Snapshot) -> None:
    lines = told(Teller(), snapshot, 0.0)
    assert lines[0] == "session r41 · night-7: root /somewhere"
    assert "finding runs/r41-8b.spawn.json: cut short at line 1, column 9" in lines
    assert "criterion 9b-a/1_hard: pass, 0.0063 > 0.0000, interval [0.0063, 0.0220]" in lines
    assert lines[-1].startswith("summary: spent $291.69 of $1,000.00, committed at most $50.12, headroom $558.19")
    assert "reads 1 landed, 1 in flight, 1 failed; arms 2, passed 1; candidates 9b 9b-a, 27b none" in lines[-1]


def test_every_line_begins_with_its_moment_in_utc(snapshot: Snapshot) -> None:
    for line in Teller().tell(snapshot, 0.0):
        assert re.match(r"2026-03-01T23:58:12Z \w", line)


def test_a_second_look_at_the_same_tells_nothing(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    assert told(teller, snapshot, 1.0) == []


def test_what_only_grows_older_is_no_change(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    older = with_trial(snapshot, log_age_s=500.0, work_at_risk_s=600.0)
    older = replace(
        older,
        taken_at=snapshot.taken_at + timedelta(seconds=30),
        money=replace(older.money, reading_age_s=210.0),
        leases=(replace(snapshot.leases[0], unchanged_s=52.0, stamp_age_s=55.0),),
        alerts=(replace(snapshot.alerts[0], text="ends 61 min past its timeout"),),
    )
    assert told(teller, older, 30.0) == []


def test_a_changed_state_says_what_it_was(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    changed = replace(
        with_trial(snapshot, state=TrialState.TIMED_OUT), leases=(replace(snapshot.leases[0], state=LeaseState.STALE),)
    )
    assert told(teller, changed, 1.0) == [
        "trial r41-27b/trial-0: timed out, try 1 of 3, call fc-01 (was running)",
        "lease r41-27b/trial-0: stale (was fresh)",
    ]


def test_money_that_moves_is_told(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    (line,) = told(teller, replace(snapshot, money=replace(snapshot.money, spent=Decimal("300"))), 1.0)
    assert line.startswith("money: spent $300.00, committed at most $50.12")


def test_steps_are_told_now_and_then_and_never_forgotten(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    assert told(teller, with_trial(snapshot, step=421), 1.0) == []
    assert told(teller, with_trial(snapshot, step=422), 2.0) == []
    (line,) = told(teller, with_trial(snapshot, step=422), PACE_S)
    assert line.startswith("step r41-27b/trial-0: 422 of 1140")


def test_a_finding_that_is_gone_is_cleared(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    lines = told(teller, replace(snapshot, findings=(), alerts=(), events=()), 1.0)
    assert sorted(lines) == [
        "alert past-timeout r41-27b/trial-0: cleared",
        "finding runs/r41-8b.spawn.json: cleared",
    ]


def test_there_is_a_summary_every_minute_even_when_nothing_changes(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    assert told(teller, snapshot, SUMMARY_EVERY_S - 0.1) == []
    (line,) = told(teller, snapshot, SUMMARY_EVERY_S)
    assert line.startswith("summary: ")


def test_the_wait_never_passes_the_next_summary(snapshot: Snapshot) -> None:
    teller = Teller()
    told(teller, snapshot, 0.0)
    assert teller.wait_s(0.0) == LOOK_EVERY_S
    assert teller.wait_s(SUMMARY_EVERY_S - 1.0) == 1.0
    assert teller.wait_s(SUMMARY_EVERY_S + 9.0) == 0.0


def test_a_line_of_file_text_stays_one_line_without_control_characters(snapshot: Snapshot) -> None:
    lines = told(Teller(), snapshot, 0.0)
    assert r"trial r41-9b/trial-0: failed, ran [/red] with \x1b[2J and \r" in lines


class Scripted:
    """A source that shows one Snapshot after another, then is interrupted as by ctrl-C."""

    def __init__(self, snapshots: Iterator[Snapshot]) -> None:
        self._snapshots = snapshots

    def observe(self) -> Snapshot:
        try:
            return next(self._snapshots)
        except StopIteration:
            raise KeyboardInterrupt from None

    def wait(self, timeout_s: float) -> bool:
        return True


def output() -> tuple[Output, io.BytesIO]:
    raw = io.BytesIO()
    return Output(io.TextIOWrapper(raw, encoding="utf-8"), {}), raw


def test_an_interruption_ends_the_lines_quietly(snapshot: Snapshot) -> None:
    written, raw = output()
    later = with_trial(snapshot, state=TrialState.DONE)
    assert follow(Scripted(iter([snapshot, later])), written, SystemClock()) is later
    assert "(was running)" in raw.getvalue().decode().splitlines()[-1]


def test_an_interruption_before_the_first_look_is_passed_on() -> None:
    written, _ = output()
    with pytest.raises(KeyboardInterrupt):
        follow(Scripted(iter([])), written, SystemClock())


def test_what_changed_before_the_end_is_still_told(snapshot: Snapshot) -> None:
    written, raw = output()
    ends = iter([False, True])
    later = with_trial(snapshot, state=TrialState.DONE)
    follow(Scripted(iter([snapshot, later])), written, SystemClock(), over=lambda: next(ends))
    *lines, summed = raw.getvalue().decode().splitlines()
    assert any("trial r41-27b/trial-0: done" in line for line in lines)
    assert " summary: " in summed
