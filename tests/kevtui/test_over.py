"""What opens over the panels closes once, whatever keys are still on their way to it."""

import sample_snapshots as samples
from shown_app import shown
from textual.widgets import Input


async def test_enter_and_escape_together_close_the_palette_and_nothing_under_it() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("ctrl+p")
        palette = it.app.screen
        field = palette.query_one(Input)
        field.post_message(Input.Submitted(field, "", None))
        palette.dismiss("")
        await it.pilot.pause()
        assert it.app.screen_stack == [it.screen]
        palette.dismiss("")
        await it.pilot.pause()
        assert it.app.screen_stack == [it.screen] and it.app.is_running
