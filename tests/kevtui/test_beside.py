"""Two read-outs side by side: the right arms, the right differences, and nothing made up where one is missing."""

from dataclasses import replace
from pathlib import Path

import pytest
import sample_snapshots as samples
from shown_app import PATIENCE, Shown, shown

from kevtui.dashboard import look
from kevtui.observe.snapshot import Arm, Criterion, Readout, Snapshot, Verdict
from kevtui.screens import beside
from kevtui.widgets.line import Pen, text_of

FIXTURES = Path(__file__).parents[1] / "fixtures" / "readouts"


def arm(name: str, size: str, value: float | None = None) -> Arm:
    verdict = Verdict.MISSING if value is None else Verdict.PASS
    return Arm(name, size, criteria=(Criterion("1_gain", "primary", verdict, value=value),))


def text(left: Readout, right: Readout) -> str:
    return "\n".join(text_of(line) for line in beside.lines(left, right, ("r31", "r27"), lambda: Pen(beside.WIDTH)))


def names(left: list[Arm], right: list[Arm]) -> list[tuple[str | None, str | None]]:
    found = beside.pairs(Readout(arms=tuple(left)), Readout(arms=tuple(right)))
    return [(one and one.name, other and other.name) for one, other in found]


def test_arms_of_one_name_are_compared_and_then_the_only_one_of_a_size() -> None:
    left = [arm("a", "4b"), arm("b", "9b"), arm("c", "27b")]
    right = [arm("z", "27b"), arm("b", "9b"), arm("y", "1b")]
    assert names(left, right) == [("b", "b"), ("c", "z"), ("a", None), (None, "y")]


def test_where_a_size_has_several_arms_none_is_picked_for_another() -> None:
    assert names([arm("a", "9b"), arm("b", "9b")], [arm("c", "9b")]) == [("a", None), ("b", None), (None, "c")]
    assert names([arm("a", "9b")], [arm("b", "9b"), arm("c", "9b")]) == [("a", None), (None, "b"), (None, "c")]


def test_the_difference_is_of_the_other_one_less_this_one() -> None:
    shown_text = text(Readout(arms=(arm("a", "4b", 0.02),)), Readout(arms=(arm("a", "4b", 0.05),)))
    line = next(line for line in shown_text.splitlines() if "1_gain" in line)
    assert "0.0200" in line and "0.0500" in line and "+0.0300" in line


def test_a_value_that_is_missing_makes_no_difference_of_nought() -> None:
    shown_text = text(Readout(arms=(arm("a", "4b", 0.02),)), Readout(arms=(arm("a", "4b"),)))
    line = next(line for line in shown_text.splitlines() if "1_gain" in line)
    assert line.split()[-1] == "–" and "missing" in line


def test_temperatures_stand_where_the_values_stand() -> None:
    one = Arm("a", "4b", criteria=arm("a", "4b", 0.02).criteria, temperature=1.25)
    shown_lines = text(Readout(arms=(one,)), Readout(arms=(one,))).splitlines()
    value, temperature = (next(line for line in shown_lines if word in line) for word in ("1_gain", "temperature"))
    assert value.index("0.0200") + len("0.0200") == temperature.index("1.25") + len("1.25")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two registered and read-out rounds."""
    for number in (61, 62):
        places = {f"r{number}.json": "experiments/rounds", f"round{number}.json": f"runs/r{number}-readout"}
        for name, place in places.items():
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_bytes((FIXTURES / name).read_bytes())
    return tmp_path


async def opened(it: Shown) -> None:
    for _ in range(PATIENCE):
        if isinstance(it.app.screen, beside.BesideScreen):
            break
        await it.pilot.pause(0.01)
    assert isinstance(it.app.screen, beside.BesideScreen)
    await it.pilot.pause()


async def test_the_key_offers_the_other_rounds_and_shows_the_chosen_one(folder: Path) -> None:
    here = look("r61", folder)
    assert here.readout is not None and here.readout.arms
    async with shown(here, (80, 24), look=look) as it:
        await it.pilot.press("d", *"r62", "enter")
        await opened(it)
        assert here.readout.arms[0].name in it.text()
        await it.pilot.press("y", "escape")
        assert "r62" in it.app.clipboard and "Δ" in it.app.clipboard
        assert it.app.screen is it.screen


async def test_a_wide_screen_has_room_for_every_name_in_full(folder: Path) -> None:
    here = look("r61", folder)
    assert here.readout is not None
    longest = max((each.name for arm in here.readout.arms for each in arm.criteria), key=len)
    assert len(longest) > 22
    async with shown(here, (80, 50), beside="r62", look=look) as it:
        await opened(it)
        assert longest not in it.text()
        await it.pilot.resize_terminal(160, 50)
        await it.pilot.pause()
        assert longest in it.text()


async def test_it_can_be_asked_for_on_the_command_line(folder: Path) -> None:
    async with shown(look("r61", folder), beside="r62", look=look) as it:
        await opened(it)


@pytest.mark.parametrize("name", ["r99", "night-x"])
async def test_a_name_that_means_nothing_is_told_and_nothing_opens(folder: Path, name: str) -> None:
    async with shown(look("r61", folder), beside=name, look=look) as it:
        for _ in range(PATIENCE):
            if it.app._notifications:
                break
            await it.pilot.pause(0.01)
        assert name in next(iter(it.app._notifications)).message
        assert it.app.screen is it.screen


async def test_hostile_read_outs_are_shown_without_what_acts() -> None:
    hostile: Snapshot = samples.hostile()
    async with shown(samples.night(), (120, 40)) as it:
        beside.show(it.screen, it.screen.snapshot or hostile, replace(hostile, title=samples.HOSTILE))
        await it.pilot.pause()
        assert not set(samples.SIGNS_THAT_ACT) & set(it.text())
