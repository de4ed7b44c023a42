"""Every key that acts, pressed as nobody means it: held down, pasted, twice at once, and while nothing new is seen.

Each verb is walked where all that it asks for is met, and its last step shows that it can be done, once.
"""

import asyncio

import pytest
from acting_app import Acting, acting
from action_lab import ActionLab
from ready_verbs import READY, ReadyVerb
from textual import events

from kevtui.actions.verbs import VERBS, Weight
from kevtui.keymap import BINDINGS
from kevtui.screens.action_dialog import ActionDialog

HELD = 20
NO_BINDING = {"take_back", "control"}
"""These begin no verb."""


def test_every_key_that_acts_is_walked() -> None:
    assert {verb.id for verb in READY} == {binding.id for binding in BINDINGS if binding.acts} - NO_BINDING


def asks_first(verb: ReadyVerb) -> bool:
    return verb.binding.danger


async def leave(it: Acting) -> None:
    """Back to the screen itself, whatever is open over it."""
    while it.app.screen is not it.screen:
        # A held enter may be closing it at this moment; then the key means nothing.
        await it.press("escape")
        await it.pilot.pause()


async def settled(it: Acting) -> None:
    """Until a key that could be followed by another one has been taken for meant, or not."""
    await asyncio.sleep(it.app.typing.settle_s + 0.1)  # what is tested is that time
    await it.pilot.pause()


async def hold_down(it: Acting, verb: ReadyVerb) -> None:
    key = await verb.reach(it)
    await it.press(key)
    await it.pilot.press(*[key] * HELD)
    await settled(it)
    assert len(it.app.screen_stack) <= 2, "a held key opened more than one dialog"
    if isinstance(it.app.screen, ActionDialog):
        await it.dialog()
        await verb.name(it)
        await it.pilot.press(*["y"] * HELD)
        await settled(it)
        assert isinstance(it.app.screen, ActionDialog), "a held key confirmed"
    await leave(it)


async def paste(it: Acting, verb: ReadyVerb) -> None:
    key = await verb.reach(it)
    for text in (key, f"{key}y", f"{key}\t{verb.typed}\ry"):
        it.app.post_message(events.Paste(text))
        await it.pilot.pause()
    await leave(it)
    # And from a terminal that does not mark what is pasted: one key right after the other.
    key = await verb.reach(it)
    await it.press(key)
    await it.pilot.press(*filter(None, (key, "y", "tab", *verb.typed, "enter", "y", "y")))
    await settled(it)
    await leave(it)


async def press_twice_and_then_once(it: Acting, verb: ReadyVerb, lab: ActionLab) -> None:
    """Two presses at once do nothing more than open the dialog; one alone does it."""
    key = await verb.reach(it)
    await it.press(key)
    if verb.fields is None and asks_first(verb) and verb.binding.keys:
        await it.pilot.press(key)
    await verb.fill(it)
    if asks_first(verb):
        await it.dialog()
        await verb.name(it)
        await it.press("y")
        await it.pilot.press("y")
        await settled(it)
        assert isinstance(it.app.screen, ActionDialog) and "nothing was done" in it.text()
        assert lab.calls == []
        await it.press("y")
    await it.until(lambda: lab.called(verb.command) == 1, f"{verb.id} to be done")
    await it.until_shown(" done ")


async def ask_again(it: Acting, verb: ReadyVerb) -> None:
    """The same again, as somebody does who thinks that nothing has happened."""
    await it.press(await verb.reach(it))
    await verb.fill(it)
    await it.pilot.pause()
    if isinstance(it.app.screen, ActionDialog):
        dialog = await it.dialog()
        if dialog._ready:
            await verb.name(it)
            await it.press("y")
            await it.until(lambda: it.app.screen is it.screen, "the dialog to close")
            await it.until(lambda: not it.screen.actions._own, "what was accepted before to be shown")
    await leave(it)


QUICK = {"launch", "resume", "open", "mirror", "pull"}
"""One of each kind; the others are walked with the long tests."""


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, id=verb.id, marks=[] if verb.id in QUICK else pytest.mark.soak) for verb in READY]
)
async def test_held_pasted_doubled_or_pressed_blindly_it_is_done_at_most_once(lab: ActionLab, verb: ReadyVerb) -> None:
    verb.prepare(lab)
    async with acting(lab) as it:
        await hold_down(it, verb)
        await paste(it, verb)
        assert lab.calls == [], "a held key or a paste did something"
        it.app._feed._stopping.set()  # from here on no Snapshot comes, as if the poller were stuck
        await press_twice_and_then_once(it, verb, lab)
        if asks_first(verb) and verb.id != "mirror":  # the second time that one is another action, and asks for a name
            await ask_again(it, verb)
    assert [call[0] for call in lab.calls] == [verb.command]
    if VERBS["reads" if verb.id == "stage_reads" else verb.binding.action.split("'")[1]].weight is not Weight.SAFE:
        accepted = [event for event in lab.events if " accepted" in event["text"]]
        assert len(accepted) <= 1
