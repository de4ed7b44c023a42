"""What the one screen shows, and what the keys do to it."""

import threading
from dataclasses import replace

import pytest
import sample_snapshots as samples
from shown_app import PATIENCE, shown
from textual.geometry import Size

from kevtui.app import KevApp
from kevtui.keymap import BINDINGS
from kevtui.observe.snapshot import Event, Severity, TrialState
from kevtui.screens import arrange as places
from kevtui.widgets.panel import READING, Panel

PANELS = ("attention", "money", "studies", "reads", "leases", "events", "readout", "verdicts")


async def test_before_anything_is_read_the_whole_layout_is_there_and_says_so() -> None:
    gate = threading.Event()
    source = samples.HeldSource(samples.night())

    def open_late() -> samples.HeldSource:
        gate.wait()
        return source

    app = KevApp(open_late, title="r41 · night-7")
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        for word in ("r41 · night-7", "READ-ONLY", "Money", "Studies", "Reads", "Read-out", "Events", "q quit"):
            assert word in text
        assert text.count(READING) >= 5
        assert "$" not in text
        gate.set()


async def test_a_snapshot_that_comes_while_the_screen_is_taken_down_is_let_go() -> None:
    app = KevApp(lambda: samples.HeldSource(samples.night()), title="r41 · night-7")
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.pause()
    app.on_kev_app_arrived(KevApp.Arrived(samples.night(), app._here))


ANSWERS = (
    "spent $291.69", "committed ≤ $150.36", "reserve $100.00", "of $1,000.00", "headroom $457.95", "burn $18.20/h",
    "AI gateway $0.07 of $100.00", "reading 3 min old from night-7-state.json",
    "420/1140", "6.1/min", "07:52 ±9 min > 07:40", "05:55 ±9 min / 07:40", "✗ timed out", "▲ at risk", "1/3",
    "continuation waits for lease", "this log has no clock", "$50.12", "● 22 s", "○ stale", "watcher ● 41 s",
    "candidate 9b none", "8 reads missing", "2 of 3 pass", "✗ fail", "≤ 0.0381", "[+0.0062, +0.0221]",
    "temperature 1.38", "[1.31, 1.46] from r3cal+v9", "in distribution", "✗ 1 failed",
    "▲ 1 overdue", "◐ 1 in flight", "✓ 18 landed",
    "2b development", "· absent", "projected 12 min past its timeout", "runs/r41-1b.spawn.json",
    "shown as it was 21 min ago",
)  # fmt: skip


async def test_a_large_screen_answers_the_six_questions() -> None:
    async with shown(samples.night()) as it:
        text = it.text()
        assert [answer for answer in ANSWERS if answer not in text] == []


async def test_the_phone_shows_what_is_wrong_the_money_and_the_motion() -> None:
    async with shown(samples.night(), (80, 24)) as it:
        text = it.text()
        for answer in ("✗ 1 timed out", "▲ 1 at risk", "$292 spent", "$458 left", "420/1140", "✗ critical",
                       "✗ 1 failed", "3_kev_ece 0.0412, needs ≤ 0.0381", "q quit"):  # fmt: skip
            assert answer in text


async def test_what_is_missing_is_shown_as_missing_and_never_as_zero() -> None:
    async with shown(samples.calm()) as it:
        text = it.text()
        assert "spent –" in text
        assert "headroom –" in text
        assert "$0" not in text
        assert "Attention" not in text
        assert "Verdicts" not in text


async def test_committed_money_that_is_not_fully_known_is_a_floor_and_says_so() -> None:
    snapshot = replace(samples.night(), money=replace(samples.money(), committed_complete=False))
    async with shown(snapshot) as it:
        assert "committed ≥ $150.36 incomplete" in it.text()
        assert "headroom $457.95 at most" in it.text()


async def test_sample_data_simulated_money_and_polling_are_marked() -> None:
    money = replace(samples.money(), simulated=True)
    snapshot = replace(samples.night(), sample=True, money=money, polling="polling: no watcher left")
    for size in ((160, 50), (80, 24)):
        async with shown(snapshot, size) as it:
            assert "SAMPLE" in it.lines()[0]
            assert "simulated" in it.text().casefold()
    async with shown(snapshot) as it:
        assert "polling: no watcher left" in it.lines()[0]


@pytest.mark.parametrize("number", range(1, 9))
async def test_a_digit_goes_to_the_panel_that_bears_it(number: int) -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press(str(number))
        assert isinstance(it.app.focused, Panel)
        assert it.app.focused.NAME.startswith(f"{number} ")


async def test_what_just_happened_is_in_sight_also_after_the_terminal_was_small() -> None:
    night = samples.night()
    async with shown(night) as it:
        newest = Event(Severity.INFO, "the newest of all", samples.NOW)
        await it.arrives(replace(night, events=(*night.events, newest)))
        for size in ((160, 50), (80, 24), (160, 50)):
            await it.pilot.resize_terminal(*size)
            await it.pilot.pause()
            assert "the newest of all" in it.text(), size


async def test_an_event_under_a_cursor_that_was_moved_stays_in_sight() -> None:
    night = samples.night()
    async with shown(night, (80, 24)) as it:
        await it.pilot.press("6", "end")
        assert it.screen.zoomed is None
        await it.arrives(replace(night, events=(*night.events, Event(Severity.INFO, "the newest", samples.NOW))))
        assert "session night-7 opened" in it.text()


async def test_a_terminal_that_grows_under_an_open_help_has_its_panels_where_they_belong() -> None:
    large = Size(160, 50)
    async with shown(samples.night(), large) as it:
        there = it.screen.regions(large)
        await it.pilot.resize_terminal(80, 24)
        await it.pilot.press("question_mark")
        await it.pilot.resize_terminal(*large)
        await it.pilot.pause()
        assert it.screen.regions(large) == there


async def test_tab_goes_round_all_panels_and_back() -> None:
    async with shown(samples.night()) as it:
        seen = []
        for _ in PANELS:
            assert it.app.focused is not None
            seen.append(it.app.focused.id)
            await it.pilot.press("tab")
        assert sorted(map(str, seen)) == sorted(PANELS)
        assert it.app.focused.id == seen[0]
        await it.pilot.press("shift+tab")
        assert it.app.focused.id == seen[-1]


@pytest.mark.parametrize("size", [(160, 50), (80, 24)])
async def test_zoom_gives_a_panel_the_screen_and_gives_it_back(size: tuple[int, int]) -> None:
    async with shown(samples.night(), size) as it:
        await it.pilot.press("4", "z") if size[0] == 160 else await it.pilot.press("o")
        await it.pilot.pause()
        assert [panel.id for panel in it.screen.panels if panel.display] == ["header", "readout", "footer"]
        assert "calibr" in it.text()
        await it.pilot.press("escape")
        await it.pilot.pause()
        assert len([panel for panel in it.screen.panels if panel.display]) > 5


async def test_a_panel_without_a_place_on_the_phone_is_reached_by_its_digit() -> None:
    async with shown(samples.night(), (80, 24)) as it:
        assert not it.screen.query_one("#leases").display
        await it.pilot.press("7")
        await it.pilot.pause()
        assert it.screen.query_one("#leases").size.height > 15
        assert "○ stale" in it.text()


async def test_the_cursor_stays_on_its_trial_when_rows_come_and_go() -> None:
    night = samples.night()
    async with shown(night) as it:
        await it.pilot.press("down", "down", "down")
        assert it.screen.studies.key == "r41-9b/trial-1"
        await it.arrives(replace(night, studies=night.studies[1:]))
        assert it.screen.studies.key == "r41-9b/trial-1"
        await it.arrives(replace(night, studies=(*samples.crowd(3).studies, *night.studies)))
        assert it.screen.studies.key == "r41-9b/trial-1"
        highlighted = [line for line, cursor in it.screen.studies._shown if cursor]
        assert "".join(span.text for span in highlighted[0]).startswith("r41-9b/1")


async def test_the_row_under_the_cursor_stands_out() -> None:
    async with shown(samples.night()) as it:
        strips = it.screen._compositor.render_strips()
        top = it.screen.studies.region.y + 2
        cursor = it.app.ink.cursor.bgcolor
        marked = [
            i for i, strip in enumerate(strips) if any(seg.style and seg.style.bgcolor == cursor for seg in strip)
        ]
        assert marked == [top]
        await it.pilot.press("down")
        await it.pilot.pause()
        strips = it.screen._compositor.render_strips()
        assert any(seg.style and seg.style.bgcolor == cursor for seg in strips[top + 1])


async def test_the_cursor_takes_the_next_row_when_its_own_is_gone() -> None:
    night = samples.night()
    async with shown(night) as it:
        await it.pilot.press("down", "down")
        await it.arrives(replace(night, studies=(night.studies[0], night.studies[2])))
        assert it.screen.studies.key == "r41-2b/trial-0"


async def test_the_curves_follow_the_cursor() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("down")
        await it.pilot.pause()
        assert "9 r41-27b/trial-1" in it.text()


async def test_the_filter_narrows_the_trials_while_one_types() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("slash", *"9b")
        await it.pilot.pause()
        assert it.screen.studies.row_keys == ["r41-9b/trial-0", "r41-9b/trial-1"]
        assert "2 of 6 match '9b'" in it.text()
        await it.pilot.press("space", *"!done", "enter")
        await it.pilot.pause()
        assert it.screen.studies.row_keys == ["r41-9b/trial-1"]
        assert it.app.focused is it.screen.studies
        await it.pilot.press("escape")
        assert len(it.screen.studies.row_keys) == 6


async def test_the_filter_takes_letters_that_are_keys_elsewhere() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("slash", *"qzot?1")
        await it.pilot.pause()
        assert it.screen.studies.filter == "qzot?1"
        assert it.app.is_running


async def test_sorting_goes_round_and_says_by_what() -> None:
    async with shown(samples.night()) as it:
        in_files = it.screen.studies.row_keys
        await it.pilot.press("s")
        assert it.screen.studies.row_keys[0] == "r41-9b/trial-1"
        await it.pilot.pause()
        assert "by state" in it.text()
        for _ in range(7):
            await it.pilot.press("s")
        assert it.screen.studies.row_keys == in_files


async def test_copying_takes_the_row_under_the_cursor_as_text() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("y")
        assert it.app.clipboard.startswith("r41-27b/0  ▲ at risk")
        assert "\n" not in it.app.clipboard


async def test_details_and_help_open_over_the_panels_and_close_again() -> None:
    async with shown(samples.night()) as it:
        for key in ("enter", "question_mark", "ctrl+p"):
            await it.pilot.press(key)
            await it.pilot.pause()
            assert it.app.screen is not it.screen
            await it.pilot.press("escape")
            await it.pilot.pause()
            assert it.app.screen is it.screen


async def test_the_palette_runs_the_command_that_is_typed() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("ctrl+p", *"read-out", "enter")
        await it.pilot.pause()
        assert it.screen.zoomed == places.READOUT
        await it.pilot.press("ctrl+p", *"theme light", "enter")
        await it.pilot.pause()
        assert it.app.theme == "kev-light"


async def test_the_log_of_the_trial_opens_and_closes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    night = replace(samples.night(), root=str(tmp_path))
    trial = night.trials[0]
    assert trial.log is not None
    log = tmp_path / trial.log
    log.parent.mkdir(parents=True)
    log.write_text("ep0 step 410/1140 loss 0.42\nep0 step 420/1140 loss 0.41\n")
    async with shown(night) as it:
        await it.pilot.press("l")
        for _ in range(PATIENCE):
            if "step 420/1140 loss" in it.text():
                break
            await it.pilot.pause(0.01)
        assert "step 420/1140 loss" in it.text()
        await it.pilot.press("escape")
        await it.pilot.pause()
        assert not it.screen.log_open
        assert "Read-out" in it.text()


async def test_a_trial_without_a_log_says_so() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("down", "down", "l")
        await it.pilot.pause()
        assert not it.screen.log_open
        assert "no log yet" in it.text()


async def test_every_binding_can_be_pressed_and_none_ends_the_program_but_quit() -> None:
    for binding in BINDINGS:
        if binding.id == "quit":
            continue
        async with shown(samples.night(), (100, 30)) as it:
            for key in binding.keys:
                await it.pilot.press(key)
            await it.pilot.pause()
            assert it.app.is_running, binding.id
            assert it.app._exception is None, binding.id


async def test_quitting_closes_the_source() -> None:
    async with shown(samples.night()) as it:
        await it.pilot.press("q")
        it.source.put(samples.night())
    assert it.source.closed.wait(10)
    assert it.app.return_code == 0


async def test_any_size_is_survived_and_the_screen_comes_back_whole() -> None:
    async with shown(samples.night()) as it:
        before = it.text()
        for width, height in [(1, 1), (500, 200), (2, 50), (160, 2), (80, 24), (3, 3), (1, 200), (500, 1), (40, 10)]:
            await it.pilot.resize_terminal(width, height)
            await it.pilot.press("down", "tab", "z", "z")
            await it.pilot.pause()
            assert it.app.size == Size(width, height)
            assert len(it.lines()) == height
        await it.pilot.press("1", "home")
        await it.pilot.resize_terminal(160, 50)
        await it.pilot.pause()
        await it.pilot.press("up", "up", "up", "up", "up", "up")
        await it.pilot.pause()
        assert it.text() == before


@pytest.mark.parametrize("size", [(160, 50), (120, 40), (80, 24), (20, 8)])
async def test_hostile_text_is_shown_and_never_acts(size: tuple[int, int]) -> None:
    async with shown(samples.hostile(), size) as it:
        for zoomed in (None, *PANELS):
            if zoomed is not None:
                it.screen.action_only(zoomed)
            await it.pilot.pause()
            for strip in it.app.screen._compositor.render_strips():
                assert not set(strip.text) & set(samples.SIGNS_THAT_ACT)
                assert strip.text.isprintable()
                assert not any(segment.style and "@click" in segment.style.meta for segment in strip)
            if zoomed in ("events", "attention"):
                assert "[/bold]" in it.text() or size[0] < 40


async def test_ascii_only_leaves_no_other_character_on_the_screen() -> None:
    for size in ((160, 50), (80, 24)):
        async with shown(samples.night(), size, ascii=True) as it:
            await it.pilot.pause()
            stray = {character for character in it.text() if not character.isascii() and character != "\n"}
            assert stray == set()
            for word in ("timed out", "at risk", "running", "done", "<="):
                assert word in it.text()


async def test_every_rule_of_the_phone_form_is_drawn_alike() -> None:
    for ascii_only, sign in ((False, "─"), (True, "-")):
        async with shown(samples.night(), (80, 24), ascii=ascii_only) as it:
            rules = [line for line in it.lines() if line[1:2].isdigit() and line[2:3] == " "]
            assert len(rules) == 4
            assert all(line.startswith(sign) and line.endswith(sign) for line in rules)


async def test_an_unfocused_terminal_is_served_at_half_the_pace() -> None:
    async with shown(samples.night()) as it:
        from textual import events

        quick = it.app._feed._pace.interval_s
        it.app.post_message(events.AppBlur())
        await it.pilot.pause()
        assert it.app._feed._pace.interval_s == 2 * quick
        it.app.post_message(events.AppFocus())
        await it.pilot.pause()
        assert it.app._feed._pace.interval_s == quick


async def test_a_trial_that_ends_badly_is_counted_in_the_title() -> None:
    night = samples.night()
    async with shown(night) as it:
        broken = replace(night.studies[0].trials[0], state=TrialState.FAILED, error="out of memory", projection=None)
        study = replace(night.studies[0], trials=(broken, night.studies[0].trials[1]))
        await it.arrives(replace(night, studies=(study, *night.studies[1:])))
        assert "1 failed" in it.text()
        assert "out of memory" in it.text()
