"""Keys that act, on the real screen: deliberate, at most once, and told."""

import sys
import threading
from pathlib import Path

import pytest
from acting_app import acting
from action_lab import ActionLab, wait_until
from textual import events

from kevtui.actions.sight import Sight
from kevtui.keymap import BINDINGS, looking, of_live, of_one
from kevtui.screens.action_dialog import ActionDialog
from kevtui.screens.palette import commands


async def test_a_launch_is_agreed_to_by_name_and_key_and_shown_with_its_id_to_the_end(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    async with acting(lab) as it:
        await it.press("L")
        await it.dialog()
        shown = it.text()
        for words in ("Launch r201", "1 × H200", "$61.38", "headroom", "cannot be undone", "kev.rounds launch"):
            assert words in shown
        await it.press("tab")
        await it.type("r201")
        await it.press("enter")
        await it.until_shown("y launch r201 for at most $61.38")
        await it.press("y")
        await it.until_shown("launch-r201-")
        await it.until_shown("pending")
        (lab.root / "hang").unlink()
        await it.until_shown(" done ")
    assert lab.called("launch") == 1


async def test_a_key_finds_its_own_program_whatever_the_environment_says(
    lab: ActionLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    async with acting(lab) as it:
        await it.press("c")
        await it.until_shown(" done ")
    assert lab.called("validate") == 1


async def test_each_action_has_a_row_of_its_own_the_newest_first(lab: ActionLab) -> None:
    async with acting(lab) as it:
        await it.press("c")
        await it.until_shown("validate r201 done")
        await it.press("b")
        await it.until_shown("refresh night done")
        assert "validate r201 done" in it.text()
        assert it.text().index("refresh night") < it.text().index("validate r201")


async def test_enter_alone_never_acts(lab: ActionLab) -> None:
    async with acting(lab) as it:
        for key in ("L", "W", "M"):
            await it.press(key)
            await it.dialog()
            await it.press("enter")
            await it.until(lambda: it.app.screen is it.screen, "the dialog to close")
    assert lab.calls == []


async def test_a_held_key_opens_one_dialog_and_confirms_none(lab: ActionLab) -> None:
    async with acting(lab) as it:
        await it.press("M")
        await it.pilot.press(*["M"] * 20)
        await it.dialog()
        assert len(it.app.screen_stack) == 2
        await it.pilot.press(*["y"] * 20)
        await it.pilot.pause(0.3)
        assert isinstance(it.app.screen, ActionDialog)
        assert "nothing was done" in it.text()
    assert lab.calls == []


async def test_a_held_confirming_key_that_began_before_the_dialog_confirms_nothing(lab: ActionLab) -> None:
    async with acting(lab) as it:
        await it.press("M")
        for _ in range(40):
            await it.pilot.press("y")
        await it.dialog()
        await it.pilot.press(*["y"] * 5)
        await it.pilot.pause(0.3)
    assert lab.calls == []


async def test_a_paste_is_no_key_and_no_name(lab: ActionLab) -> None:
    async with acting(lab) as it:
        for text in ("L", "My", "p", "M\ty\r", "r201"):
            it.app.post_message(events.Paste(text))
            await it.pilot.pause()
        assert it.app.screen is it.screen
        await it.press("L")
        await it.dialog()
        await it.press("tab")
        it.app.post_message(events.Paste("r201"))
        await it.until_shown("A paste does not count")
        await it.press("enter", "y")
        await it.pilot.pause(0.3)
        # And one that comes as if it were typed, from a terminal that does not mark pastes.
        await it.press("escape")
        it.app.typing._last -= 10
        await it.pilot.press(*"pL\ry\tM")
        await it.pilot.pause(0.3)
    assert lab.calls == []


async def test_the_same_key_twice_fast_is_one_action(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    async with acting(lab) as it:
        await it.press("M")
        await it.pilot.press("M")
        await it.dialog()
        await it.press("y")
        await it.until_shown("pending")
        await it.press("M")
        await it.pilot.pause()
        assert it.app.screen is it.screen
        assert it.screen.actions.under_way("reads", "r201")
        (lab.root / "hang").unlink()
        await it.until_shown(" done ")
    assert lab.called("launch-reads") == 1


async def test_two_dashboards_one_action(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    async with acting(lab) as it:
        await it.press("M")
        await it.dialog()
        assert lab.act("reads", "r201", "--yes", "--beside", "--no-wait").report["changed"]
        await it.press("y")
        await it.until_shown("pending")
        (lab.root / "hang").unlink()
        await it.until_shown(" done ")
    assert lab.called("launch-reads") == 1


@pytest.mark.parametrize("key", ["u", "escape"])
async def test_what_spends_can_be_taken_back_while_it_waits(lab: ActionLab, key: str) -> None:
    async with acting(lab, undo_window_s=60) as it:
        await it.press("M")
        await it.dialog()
        await it.press("y")
        await it.until_shown("takes it back")
        await it.press(key)
        await it.until_shown("taken back")
    assert lab.calls == [] and lab.events == []


async def test_it_begins_when_the_waiting_is_over(lab: ActionLab) -> None:
    async with acting(lab, undo_window_s=0.8) as it:
        await it.press("M")
        await it.dialog()
        await it.press("y")
        await it.until_shown("takes it back")
        await it.until_shown(" done ")
    assert lab.called("launch-reads") == 1


async def test_unmet_preconditions_are_a_checklist_and_cannot_be_confirmed(lab: ActionLab) -> None:
    lab.open_session(age_s=7200)
    async with acting(lab) as it:
        await it.press("L")
        await it.dialog()
        assert "NO" in it.text() and "the billing reading is fresh" in it.text()
        await it.press("y", "enter")
    assert lab.calls == []


async def test_the_target_is_checked_again_at_the_moment_of_doing(lab: ActionLab) -> None:
    async with acting(lab) as it:
        await it.press("M")
        await it.dialog()
        lab.open_session(age_s=7200)
        await it.press("y")
        await it.until_shown("refused")
    assert lab.calls == []


async def test_keys_act_while_the_source_of_snapshots_is_stuck(lab: ActionLab) -> None:
    async with acting(lab) as it:
        feed = it.app._feed
        feed._stopping.set()  # it takes no further Snapshot
        await it.press("M")
        await it.pilot.press("M", "M")
        await it.dialog()
        await it.press("y")
        await it.until_shown(" done ")
    assert lab.called("launch-reads") == 1


async def test_a_safe_action_needs_no_dialog_and_held_down_it_is_done_once(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    async with acting(lab) as it:
        await it.press("c")
        await it.until_shown("validate-r201-")
        await it.pilot.press(*["c"] * 30)
        (lab.root / "hang").unlink()
        await it.until_shown(" done ")
    assert lab.called("validate") == 1


async def test_keys_answer_while_what_they_ask_hangs(lab: ActionLab) -> None:
    wait = "import sys, time; from pathlib import Path; p = Path(sys.argv[1])\nwhile p.exists(): time.sleep(0.02)"
    hang = lab.root / "hang"
    hang.touch()
    async with acting(lab, command=(sys.executable, "-c", wait, str(hang))) as it:
        await it.press("L")
        await it.until_shown("checking, by a fresh read")
        await it.press("y", "enter")
        await it.until(lambda: it.app.screen is it.screen, "the dialog to close at once")
        await it.press("z")
        assert it.screen.zoomed is not None
        hang.unlink()
    assert lab.calls == []


async def test_keys_answer_while_a_look_at_the_disk_hangs(lab: ActionLab, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()

    def hang(session: str | None) -> Sight:
        gone.wait(60)
        return Sight(mine=True)

    async with acting(lab) as it:
        monkeypatch.setattr(it.screen.actions._eyes, "look", hang)
        for _ in range(5):
            it.screen.actions.look()
        await it.press("M")
        await it.dialog()
        await it.press("n")
        await it.until(lambda: it.app.screen is it.screen, "the dialog to close")
        assert sum(thread.name == "look" for thread in threading.enumerate()) == 1
        gone.set()
    assert lab.calls == []


HOSTILE = "[/bold] [@click=app.quit]x[/] [red]no\x1b[2J\x1b]0;t\x07\x9b31m\rover\\"


async def test_a_hostile_text_is_shown_whole_in_a_row_and_in_a_dialog(lab: ActionLab) -> None:
    (lab.root / "trouble").write_bytes(HOSTILE.encode())
    async with acting(lab, size=(250, 40)) as it:
        await it.press("c")
        await it.until_shown("failed")
        assert "[/bold] [@click=app.quit]x[/] [red]no\\x1b[2J\\x1b]0;t\\x07\\x9b31m\\rover\\" in it.text()
        path = lab.root / "experiments" / "rounds" / "r201.json"
        path.write_text(path.read_text().replace('"H100"', '"[/b][@click=app.quit]\\u001b[2J"'))
        await it.press("L")
        await it.dialog()
        assert "[/b][@click=app.quit]\\x1b[2J" in it.text()
        assert "\x1b" not in it.text()


async def test_ascii_only_dialogs_have_nothing_else(lab: ActionLab) -> None:
    async with acting(lab, size=(80, 24), ascii=True) as it:
        await it.press("L")
        await it.dialog()
        assert it.text().isascii()
        assert "Cancel" in it.text() and "more" in it.text()


async def test_a_read_only_dashboard_has_no_verb_anywhere(lab: ActionLab) -> None:
    before = sorted(lab.runs.rglob("*"))
    async with acting(lab, read_only=True) as it:
        assert it.screen.bindings == looking(of_one(of_live(BINDINGS, looks_back=False)))
        offered = {command.action for command in commands(it.screen.bindings, [])}
        assert not any("screen.act" in action or "control" in action for action in offered)
        for binding in BINDINGS:
            if binding.acts:
                await it.press(*binding.keys)
                await it.screen.run_action(binding.action)
        assert it.app.screen is it.screen
        assert "READ-ONLY" in it.text() and "launch" not in it.text().split("\n")[-1]
    assert sorted(lab.runs.rglob("*")) == before
    assert lab.calls == []


async def test_a_second_dashboard_only_looks_says_who_has_control_and_gets_it_when_given(lab: ActionLab) -> None:
    async with acting(lab) as first:
        async with acting(lab, in_control=False) as second:
            await second.until_shown("READ-ONLY · ")
            await second.press("L", "M")
            assert second.app.screen is second.screen
            assert not any(binding.danger for binding in second.screen.bindings)
            await second.press("a")
            await second.until(lambda: list(Path(lab.runs / ".actions").glob("*.ask.json")), "the wish")
            first.screen.actions.look()
            await first.until_shown("asks for control")
            await first.press("a")
            await first.until(lambda: not first.screen.actions.hands, "control to be given")
            second.screen.actions.look()
            await second.until_shown("CONTROL")
        await first.until(lambda: "READ-ONLY" in first.text(), "the first to only look")


def test_control_of_one_that_died_is_free(lab: ActionLab) -> None:
    import subprocess

    code = (
        "import sys, time; from pathlib import Path; from kev.clock import SystemClock; "
        "from kevtui.actions.control import Control; c = Control(Path(sys.argv[1]), 'night', SystemClock()); "
        "assert c.take() is None; print('has it', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(lab.runs)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    from kevtui.actions.holder import holder_in_control

    holder = holder_in_control(lab.runs, "night")
    assert holder is not None and holder.process == process.pid
    process.kill()
    process.communicate()
    wait_until(lambda: holder_in_control(lab.runs, "night") is None, "the lock to be free")
