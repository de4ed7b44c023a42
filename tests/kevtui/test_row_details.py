"""Enter on a row of Reads, Read-out or Attention opens everything known of it."""

import pytest
import sample_snapshots as samples
from shown_app import Shown, shown
from textual.widgets import Static

from kevtui.screens.facts_of import of_row


async def opened(it: Shown, digit: str) -> str:
    await it.pilot.press(digit, "down", "enter")
    await it.pilot.pause()
    assert len(it.app.screen_stack) == 2, "the details are open"
    return str(it.app.screen.query_one(Static).render())


@pytest.mark.parametrize(
    ("digit", "words"),
    [("3", ["state", "directory"]), ("4", ["verdict", "from"]), ("8", ["severity", "what"])],
)
async def test_enter_opens_what_is_known_and_y_copies_it(digit: str, words: list[str]) -> None:
    async with shown(samples.night(), (160, 50)) as it:
        text = await opened(it, digit)
        assert all(word in text for word in words)
        await it.pilot.press("y")
        assert it.app.clipboard == text


def test_a_criterion_has_all_its_figures_and_where_they_come_from() -> None:
    snapshot = samples.night()
    assert snapshot.readout is not None
    arm = next(arm for arm in snapshot.readout.arms if arm.criteria)
    item = arm.criteria[0]
    ((heading, facts),) = of_row(snapshot, "readout", f"{arm.name} {item.name}")
    told = dict(facts)
    assert heading == item.name
    assert {"candidate", "parent", "delta", "interval", "value", "compares"} <= told.keys()
    assert told["from"] == (snapshot.readout.source or "nothing has been read out yet")


async def test_the_curves_are_reached_where_they_have_no_place_of_their_own() -> None:
    async with shown(samples.night(), (120, 40)) as it:
        assert not it.screen.query_one("#plot").display
        await it.pilot.press("9")
        await it.pilot.pause()
        assert it.screen.query_one("#plot").display
