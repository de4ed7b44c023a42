"""What is written in the background is written in order, and nothing after a failure."""

import threading

import pytest

from kev.train.resume import Pace
from kev.train.writer import BackgroundWriter


def test_jobs_run_in_order_and_in_another_thread() -> None:
    seen: list[tuple[int, bool]] = []
    main = threading.get_ident()
    with BackgroundWriter() as writer:
        for number in range(20):
            writer.submit(lambda number=number: seen.append((number, threading.get_ident() != main)))  # type: ignore[misc]
        writer.finish()
    assert seen == [(number, True) for number in range(20)]


def test_after_a_failure_nothing_more_is_written_and_everybody_hears_of_it() -> None:
    written: list[str] = []

    def fail() -> None:
        raise OSError("no space left")

    writer = BackgroundWriter()
    with pytest.raises(OSError, match="no space left"), writer:
        first = threading.Event()
        writer.submit(first.wait)
        writer.submit(fail)
        writer.submit(lambda: written.append("after"))
        first.set()
        writer.finish()
    assert written == []
    with pytest.raises(OSError, match="no space left"):
        writer.submit(lambda: written.append("later"))


def test_what_was_begun_is_ended_when_training_fails() -> None:
    written: list[str] = []
    gate = threading.Event()
    with pytest.raises(ZeroDivisionError), BackgroundWriter() as writer:
        writer.submit(gate.wait)
        writer.submit(lambda: written.append("point"))
        gate.set()
        _ = 1 / 0
    assert written == ["point"]


@pytest.mark.parametrize(
    ("pace", "step", "since", "blocked", "due"),
    [
        (Pace(steps=5), 10, 0.0, 0.0, True),
        (Pace(steps=5), 11, 1e9, 0.0, False),
        (Pace(minutes=2), 3, 119.0, 0.0, False),
        (Pace(minutes=2), 3, 120.0, 0.0, True),
        (Pace(minutes=2), 3, 120.0, 30.0, False),  # a point that blocks for 30 s is made every 600 s at most
        (Pace(minutes=2), 3, 600.0, 30.0, True),
        (Pace(), 100, 1e9, 0.0, False),
    ],
)
def test_points_come_by_steps_or_by_minutes_that_stretch(
    pace: Pace, step: int, since: float, blocked: float, due: bool
) -> None:
    assert pace.is_due(step=step, since_last=since, blocked=blocked) is due
