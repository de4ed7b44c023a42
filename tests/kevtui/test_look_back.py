"""The past on the screen of a live session: the session goes on, what is wrong with it is told, and nothing acts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

import sample_snapshots as samples
from nights import at, make_night
from shown_app import PATIENCE, Shown, shown

from kev.errors import NotFound
from kevtui.keymap import BINDINGS, of_replay
from kevtui.observe.snapshot import Alert, Section, Severity, Snapshot
from kevtui.replay.history import History
from kevtui.replay.player import Player
from kevtui.widgets.actions import WAITING, ActionsPanel, OwnAction


def live(step: int = 0) -> Snapshot:
    """The present of a session: a warning, and a title that says which one it is."""
    alert = Alert("past-timeout", Severity.WARNING, "r41-27b/0", f"projected past its timeout, told at {step}")
    return replace(samples.night(), title=f"present {step}", alerts=(alert,), findings=(), changed=frozenset(Section))


@asynccontextmanager
async def looking(
    root: Path, size: tuple[int, int] = (160, 50), open_history: Callable[[], History] | None = None
) -> AsyncIterator[Shown]:
    """A session on the screen, whose past is the small night."""
    history = make_night(root)

    def open_past() -> Player:
        return Player(open_history or (lambda: history), start=lambda night: night.ends_at, playing=False)

    async with shown(live(), size, open_past=open_past, may_act=True) as it:
        yield it


async def until(it: Shown, holds: Callable[[], bool], what: str) -> None:
    for _ in range(PATIENCE):
        if holds():
            await it.pilot.pause()
            return
        await it.pilot.pause(0.01)
    raise AssertionError(f"{what} never came:\n{it.text()}")


async def shows_moment(it: Shown, minutes: float) -> None:
    await until(
        it,
        lambda: it.screen.snapshot is not None and it.screen.snapshot.replay is not None
        and it.screen.snapshot.taken_at == at(minutes),
        f"minute {minutes}",
    )  # fmt: skip


async def test_one_key_goes_into_the_past_and_the_same_comes_back(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        assert "REPLAY 2026-03-01 21:10:00Z" in it.lines()[0]
        await it.pilot.press("left")
        await shows_moment(it, 62)
        await it.pilot.press("left_square_bracket")
        await shows_moment(it, 20)
        await it.pilot.press("right")
        await shows_moment(it, 21)
        await it.pilot.press("backspace")
        await until(it, lambda: "present 0" in it.lines()[0], "the present")
        assert "REPLAY" not in it.text()


async def test_the_speed_of_the_past_is_on_the_screen(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        await it.pilot.press("less_than_sign", "plus", "space")
        await until(it, lambda: "120x" in it.lines()[0], "the speed")


async def test_escape_comes_back_too_once_nothing_else_is_left(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        await it.pilot.press("z")
        assert it.screen.zoomed is not None
        await it.pilot.press("escape")
        assert it.screen.zoomed is None
        assert "REPLAY" in it.lines()[0]
        await it.pilot.press("escape")
        await until(it, lambda: "present 0" in it.lines()[0], "the present")


async def test_the_session_goes_on_meanwhile_and_its_alerts_are_told(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        assert "now: r41-27b/0" in it.text()
        new = Alert("spend", Severity.CRITICAL, "money", "over 90 % of the authorization is spent")
        later = live(1)
        it.source.put(replace(later, alerts=(*later.alerts, new)))
        await until(it, lambda: "now: money" in it.text(), "the alert of now")
        assert "now ▲ 2" in it.lines()[0]
        assert "REPLAY" in it.lines()[0], "the moment that is looked at stays"
        assert [note.message for note in it.app._notifications if "over 90 %" in note.message]
        await it.pilot.press("backspace")
        await until(it, lambda: "present 1" in it.lines()[0], "the present as it is now")


async def test_nothing_that_acts_is_there_while_looking_back(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        assert not any(binding.acts for binding in it.screen.bindings)
        for binding in BINDINGS:
            name = binding.action.removeprefix("screen.").partition("(")[0]
            if binding.acts:
                assert it.screen.check_action(name, ()) is False, binding.id
                for key in binding.keys:
                    await it.pilot.press(key)
                await it.screen.run_action(binding.action.removeprefix("screen."))
        assert it.app.screen is it.screen, "no dialog opened"
        assert it.screen.actions._own == {}


async def test_what_waits_to_be_taken_back_is_not_left_out_of_sight(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        it.screen.actions._own["launch r41"] = OwnAction("launch", "r41", WAITING, until=monotonic() + 3600)
        await it.pilot.press("backspace")
        assert any("u takes it back" in note.message for note in it.app._notifications)
        assert not it.screen.in_past


async def test_an_action_that_is_refused_meanwhile_is_told_and_opens_nothing(tmp_path: Path) -> None:
    async with looking(tmp_path) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        report = {
            "verb": "launch",
            "target": "r41",
            "state": "refused",
            "text": "past the authorization",
            "checks": [1],
        }
        it.screen.actions.post_message(ActionsPanel.Refused(report))
        await until(
            it,
            lambda: any("now: launch r41: past" in note.message for note in it.app._notifications),
            "the refusal",
        )
        assert it.app.screen is it.screen


async def test_a_past_that_cannot_be_read_leaves_the_present_where_it_was(tmp_path: Path) -> None:
    def nothing() -> History:
        raise NotFound("n1: nothing there to replay")

    async with looking(tmp_path, open_history=nothing) as it:
        await it.pilot.press("backspace")
        await until(it, lambda: any("nothing there" in note.message for note in it.app._notifications), "the reason")
        assert "present 0" in it.lines()[0]
        assert "REPLAY" not in it.text()


async def test_without_a_past_there_is_no_key_for_it() -> None:
    async with shown(live()) as it:
        assert "replay" not in {binding.id for binding in it.app.bindings_table}
        await it.pilot.press("backspace", "left", "space")
        await asyncio.sleep(0)
        assert "REPLAY" not in it.text()


async def test_a_phone_says_replay_and_its_moment_too(tmp_path: Path) -> None:
    async with looking(tmp_path, size=(80, 24)) as it:
        await it.pilot.press("backspace")
        await shows_moment(it, 70)
        assert "REPLAY 21:10:00Z" in it.lines()[0]


def test_a_replay_has_the_way_back_only_where_there_is_a_now() -> None:
    assert "replay" not in {binding.id for binding in of_replay(BINDINGS)}
    assert "replay" in {binding.id for binding in of_replay(BINDINGS, comes_back=True)}
