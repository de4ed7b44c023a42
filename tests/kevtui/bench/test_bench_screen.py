"""What the screen of a bench shows, and what the keys do to it."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bench_files import FULL_WIDTH, HOSTILE, SUMMARY, entry, result, workspace, write_meta
from textual.pilot import Pilot

from kev.clock import SystemClock
from kevtui.app import Options
from kevtui.bench.app import BenchApp
from kevtui.bench.bindings import bindings_for
from kevtui.bench.observer import BenchObserver
from kevtui.bench.target import bench_at
from kevtui.keymap import BINDINGS, remap

PATIENCE = 500
"""Turns of the event loop; a healthy one needs about ten."""


class Shown:
    """A bench on the screen, without a terminal."""

    def __init__(self, app: BenchApp, pilot: "Pilot[int]") -> None:
        self.app, self.pilot = app, pilot

    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    async def until(self, *texts: str) -> str:
        for _ in range(PATIENCE):
            await self.pilot.pause(0.01)
            if all(text in self.text() for text in texts):
                return self.text()
        missing = [text for text in texts if text not in self.text()]
        raise AssertionError(f"never shown: {missing}\n{self.text()}")


@asynccontextmanager
async def shown(path: Path, size: tuple[int, int] = (160, 50)) -> AsyncIterator[Shown]:
    target = bench_at(str(path), root=None, cwd=path)
    assert target is not None
    app = BenchApp(
        lambda: BenchObserver(target, clock=SystemClock(), poll=True),
        title=target.title, several=target.is_results, options=Options(),
    )  # fmt: skip
    async with app.run_test(size=size, notifications=True) as pilot:
        yield Shown(app, pilot)


@pytest.fixture
def running(tmp_path: Path) -> Path:
    scores = [entry(1, 24.0), entry(2, None, error="no config.json"), entry(3, 65.0, label="gain")]
    path = workspace(
        tmp_path / "arithmetic" / "20270115T080000_grpo", scores, start_time=time.time() - 300, timeout_s=3000
    )
    (path / "reports" / "summary.md").write_text(SUMMARY + FULL_WIDTH)
    (path / "agent.log").write_text("".join(f"step {step} of 400\n" for step in range(400)))
    return path


ANSWERS = (
    "● running", "5 min of 50 min · 45 min left",
    "baseline 20.00 · best 65.00 (submission 3) · improvement +45.00",
    "gain ✓ best", "output/v2  no config.json", "score; dotted: baseline 20.00, best 65.00", "warm start", "SFT",
    "GRPO",
    "1  grading failed", "step 399 of 400", "CPU", "READ-ONLY", "q quit",
)  # fmt: skip


async def test_a_large_screen_says_how_much_time_is_left_how_good_it_is_and_what_was_tried(running: Path) -> None:
    async with shown(running) as it:
        text = await it.until("baseline 20.00")
        assert [answer for answer in ANSWERS if answer not in text] == []


async def test_the_phone_has_time_scores_submissions_and_journal(running: Path) -> None:
    async with shown(running, (80, 24)) as it:
        text = await it.until("45 min left", "best 65.00", "gain ✓ best", "warm start")
        assert "│ time" not in text


async def test_a_graded_submission_comes_to_the_screen_by_itself(running: Path) -> None:
    async with shown(running) as it:
        await it.until("submission 3")
        scores = json.loads((running / "scores.json").read_text())
        (running / "scores.json").write_text(json.dumps([*scores, entry(4, 92.5, label="gain")]))
        write_meta(running, start_time=time.time() - 3000, end_time=time.time(), timeout_s=3600)
        text = await it.until("best 92.50 (submission 4)", "✓ ended")
        assert "CPU" not in text, "of a run that is over the machine says nothing"


async def test_a_key_opens_all_of_the_agents_log_and_escape_leaves_it(running: Path) -> None:
    async with shown(running) as it:
        await it.until("step 399 of 400")
        await it.pilot.press("l")
        await it.until("following")
        await it.pilot.press("home")
        await it.until("step 0 of 400")
        await it.pilot.press("escape")
        await it.until("3 Journal")


async def test_a_row_opens_as_all_that_is_known_of_it(running: Path) -> None:
    async with shown(running) as it:
        await it.until("gain ✓ best")
        await it.pilot.press("down", "enter")
        await it.until("submission 2", "no config.json", "handed in after")
        await it.pilot.press("escape", "3", "enter")
        await it.until("iteration 2", "problem or progress")


async def test_hostile_text_stays_text(running: Path) -> None:
    (running / "agent.log").write_text(f"{HOSTILE}\n")
    (running / "scores.json").write_text(json.dumps([entry(1, 24.0, model_path=HOSTILE, error=HOSTILE)]))
    async with shown(running) as it:
        text = await it.until("[/] [@click=app.quit]x[/]")
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)


async def test_several_runs_are_compared_and_the_scores_follow_the_cursor(tmp_path: Path) -> None:
    first = workspace(tmp_path / "arithmetic" / "20270115T080000_sft", [entry(1, 24.0), entry(2, 23.0)], end_time=None)
    results = tmp_path / "results.csv"
    result(results, "a1", "sft", "arithmetic", 3.0, verdict="tie", workspace=str(first))
    result(results, "b1", "grpo", "decisions", 5.25, verdict="gain")
    async with shown(results) as it:
        text = await it.until("9 Scores · grpo on decisions", "no score to draw")
        for answer in ("+3.00 of 1", "+5.25 of 1", "tie", "gain"):
            assert answer in text
        await it.pilot.press("down")
        await it.until("9 Scores · sft on arithmetic", "score; dotted: baseline 20.00, best 23.00")
        await it.pilot.press("s", "home")
        await it.until("by improvement", "9 Scores · grpo on decisions")


def test_the_keys_are_the_users_own_and_none_of_them_acts() -> None:
    table = remap({"details": "f3"}, BINDINGS)
    for several in (False, True):
        bindings = bindings_for(table, several=several)
        assert not [binding.id for binding in bindings if binding.acts or binding.danger]
        assert next(binding.keys for binding in bindings if binding.id == "details") == ("f3",)
