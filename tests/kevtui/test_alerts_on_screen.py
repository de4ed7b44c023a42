"""Alerts on the real screen: acknowledged by a key, gone until they change, told to terminal and hook, written down."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import sample_snapshots as samples
from shown_app import Shown, shown

from kevtui.alerting.book import News
from kevtui.alerting.choices import Choices
from kevtui.alerting.desk import AlertDesk
from kevtui.alerting.herald import Herald, as_values, context_of
from kevtui.observe.snapshot import Alert, Section, Severity, Snapshot

PAST = Alert("past-timeout", Severity.WARNING, "r41-27b/trial-0", "projected 12 min past its timeout", "attempt 1")
DOWN = Alert("watcher-down", Severity.CRITICAL, "r41.watch.json", "watcher down: silent for 7 min")
READY = Alert("candidate", Severity.INFO, "9b", "9b-a is ready as the candidate of 9b")


def night(*alerts: Alert) -> Snapshot:
    return replace(samples.night(), alerts=alerts, findings=(), events=(), changed=frozenset(Section))


async def press(it: Shown, *keys: str) -> None:
    """Press keys as a person does, with enough quiet before each."""
    for key in keys:
        it.app.typing._last -= 10
        await it.pilot.press(key)
    await it.pilot.pause()


async def test_a_severity_is_a_sign_and_a_word() -> None:
    async with shown(night(DOWN, PAST, READY)) as it:
        assert "✗ critical r41.watch.json" in it.text()
        assert "▲ warning  r41-27b/trial-0" in it.text()
        assert "✓ ready    9b" in it.text()


async def test_the_key_goes_to_the_alerts_and_there_acknowledges_the_one_under_the_cursor() -> None:
    async with shown(night(DOWN, PAST)) as it:
        await press(it, "exclamation_mark")
        assert DOWN.text in it.text(), "the first press only goes there"
        await press(it, "j", "exclamation_mark")
        assert DOWN.text in it.text() and PAST.text not in it.text()
        assert "1 acknowledged" in it.text()
        assert "dashboard only" in it.text()


async def test_a_held_key_acknowledges_one() -> None:
    # A second may go by between two presses of a machine that does much else.
    async with shown(night(DOWN, PAST), quiet_s=5.0) as it:
        await press(it, "exclamation_mark")
        await press(it, "exclamation_mark")
        await it.pilot.press(*["exclamation_mark"] * 20)
        assert sum(alert.acknowledged for alert in it.screen.snapshot.alerts) == 1  # type: ignore[union-attr]


async def test_it_stays_away_until_it_is_graver_or_another_condition() -> None:
    async with shown(night(PAST)) as it:
        await press(it, "exclamation_mark", "exclamation_mark")
        assert PAST.text not in it.text() and it.screen.focused is it.screen.studies
        older = replace(PAST, text="projected 14 min past its timeout")
        await it.arrives_marked(night(older))
        assert older.text not in it.text()
        await it.arrives_marked(night(replace(older, condition="attempt 2")))
        assert older.text in it.text()


async def test_all_can_be_acknowledged_and_shown_again_from_the_palette() -> None:
    async with shown(night(DOWN, PAST), (80, 24)) as it:
        await press(it, "8", "z")
        await it.screen.run_action("screen.acknowledge_all")
        await it.pilot.pause()
        assert it.screen.zoomed is None and "attention" not in it.text().lower()
        await press(it, "exclamation_mark")
        assert "Nothing needs attention" in it.text()
        await it.screen.run_action("screen.unacknowledge")
        await it.pilot.pause()
        assert "watcher down" in it.text()


async def test_a_finding_is_acknowledged_as_the_alert_that_says_it() -> None:
    damaged = Alert("damaged", Severity.WARNING, "runs/r41-1b.spawn.json", "empty", condition="empty")
    async with shown(replace(samples.night(), alerts=(damaged,))) as it:
        assert it.text().count("runs/r41-1b.spawn.json") == 1
        await press(it, "exclamation_mark", "exclamation_mark")
        assert "runs/r41-1b.spawn.json" not in it.text().replace("damaged:runs/r41-1b.spawn.json", "")


# ------------------------------------------------------------------------------------------------ telling, unseen


def herald(written: list[str], **choices: Any) -> Herald:
    return Herald(Choices(**choices), write=written.append, complain=written.append, environment={},
                  monotonic=lambda: 0.0)  # fmt: skip


@pytest.mark.parametrize(
    ("choices", "sent"),
    [
        ({}, ["\x07"]),
        ({"bell": None}, []),
        ({"bell": None, "notify": Severity.CRITICAL}, ["\x1b]9;kevtui: r41 · night-7: critical: r41.watch.json: "
                                                       "watcher down: silent for 7 min\x07"]),
        ({"mute": frozenset({"watcher-down"})}, []),
    ],
)  # fmt: skip
def test_only_what_the_user_wants_is_told(choices: dict[str, Any], sent: list[str]) -> None:
    written: list[str] = []
    made = herald(written, **choices)
    made.take(night(PAST))
    made.take(night(PAST, READY))
    assert written == []
    made.take(night(DOWN, PAST, READY))
    assert written == sent


def test_the_gravest_is_told_first_and_the_bell_rings_once() -> None:
    written: list[str] = []
    made = herald(written, notify=Severity.INFO, bell=Severity.INFO)
    made.take(night())
    made.take(night(READY, PAST, DOWN))
    (sent,) = written
    assert sent.startswith("\x07\x1b]9;kevtui: r41 · night-7: critical")
    assert sent.count("\x1b]9;") == 3 and sent.replace("\x1b]9", "").count("\x07") == 4


def test_the_hook_is_given_whose_it_is_and_what_is_made_up() -> None:
    values = as_values(News(PAST, 2))
    assert (values["kind"], values["repeats"], values["condition"]) == ("past-timeout", 2, "attempt 1")
    context = context_of(samples.night())
    assert (context["session"], context["sample"], context["simulated"]) == ("night-7", False, False)


class Held:
    """A writer that remembers what it was given, and fails where it is told to."""

    def __init__(self) -> None:
        self.kept: list[list[str]] = []
        self.trouble = False

    def keep_alerts(self, session: str | None, state_file: str | None, alerts: Iterable[Alert]) -> None:
        self.kept.append(sorted(alert.id for alert in alerts))
        if self.trouble:
            raise OSError("the disk is full")

    def acknowledge(self, session: str | None, state_file: str | None, alerts: Iterable[Alert]) -> None:
        self.kept.append([f"known {alert.id}" for alert in alerts])

    def withdraw(self, session: str | None, state_file: str | None) -> None:
        self.kept.append(["withdrawn"])


def settle(desk: AlertDesk) -> None:
    thread = desk._notes._thread
    if thread is not None:
        thread.join(60)


def test_what_stands_is_written_down_when_it_changes_and_when_control_comes() -> None:
    said: list[str] = []
    desk, writer = AlertDesk(herald([]), complain=said.append), Held()
    for snapshot, who in (
        (night(PAST), None), (night(PAST), writer), (night(PAST), writer), (night(replace(PAST, text="x")), writer),
        (night(PAST, DOWN), writer), (night(PAST, DOWN), None), (night(PAST, DOWN), writer),
    ):  # fmt: skip
        desk.take(desk.marked(snapshot), who)
        settle(desk)
    assert writer.kept == [[PAST.id], [PAST.id, DOWN.id], [PAST.id, DOWN.id]]
    desk.acknowledge([PAST], writer)
    desk.withdraw(writer)
    settle(desk)
    assert writer.kept[3:] == [[f"known {PAST.id}"], ["withdrawn"]]
    desk.acknowledge([DOWN], None)
    assert len(writer.kept) == 5 and said == []


def test_a_disk_that_takes_nothing_is_said_once() -> None:
    said: list[str] = []
    desk, writer = AlertDesk(herald([]), complain=said.append), Held()
    writer.trouble = True
    for alerts in ((PAST,), (PAST, DOWN), (DOWN, READY)):
        desk.take(desk.marked(night(*alerts)), writer)
        settle(desk)
    assert said == ["alerts cannot be written down: the disk is full"]
