"""A night replayed: nothing later than the moment shows, and the player moves as it is told."""

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from nights import at, make_night, put, text

from kevtui.cli import main
from kevtui.keymap import BINDINGS, of_live, of_replay
from kevtui.observe.snapshot import Snapshot, TrialState
from kevtui.observe.target import resolve
from kevtui.replay.command import open_history
from kevtui.replay.history import History
from kevtui.replay.kinds import kind_of
from kevtui.replay.night import load_night
from kevtui.replay.past import moment
from kevtui.replay.player import Player


def cut_off(root: Path, minutes: float) -> None:
    """Take from the files on the disk every record that is later than `minutes`, as if it had never been written."""
    runs = root / "runs"
    for name in ("n1-events.jsonl", "r5-a/00-trial-0/metrics.jsonl"):
        path = runs / name
        stamp = path.stat().st_mtime
        kept = [line for line in path.read_text().splitlines() if json.loads(line)["at"] <= text(minutes)]
        path.write_text("".join(f"{line}\n" for line in kept))
        os.utime(path, (stamp, stamp))
    for path in (runs / "r5-a/00-trial-0").iterdir():
        if path.name != "metrics.jsonl" and path.stat().st_mtime > at(minutes).timestamp():
            path.unlink()


def of_moment(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.money, snapshot.studies, snapshot.events, snapshot.leases, snapshot.readout, snapshot.verdicts


def test_what_comes_after_a_moment_changes_nothing_of_it(tmp_path: Path) -> None:
    for minutes in (5, 9, 15, 20.5, 35, 61):
        root = tmp_path / str(minutes)
        whole = moment(make_night(root), at(minutes))
        cut_off(root, minutes)
        history = History(load_night(resolve("n1", root=root, cwd=root), root / "volumes" / "kev-leases"))
        assert of_moment(moment(history, at(minutes))) == of_moment(whole)


@settings(max_examples=40, deadline=None)
@given(st.floats(-10, 90))
def test_nothing_from_the_future_shows(tmp_path_factory: Any, minutes: float) -> None:
    snapshot = moment(shared_night(tmp_path_factory), at(minutes))
    assert all(event.at is None or event.at <= at(minutes) for event in snapshot.events)
    assert all(read_at <= at(minutes) for read_at, _ in snapshot.money.readings)
    for trial in snapshot.trials:
        assert trial.started_at is None or trial.started_at <= at(minutes)
        assert trial.step is None or at(10 + trial.step) <= at(minutes)
        assert trial.state is not TrialState.DONE or at(minutes) >= at(62)
        assert trial.log is None
    if at(minutes) < at(9):
        assert snapshot.studies == ()
    if at(minutes) < at(0):
        assert snapshot.money.authorization is None


_NIGHTS: dict[int, History] = {}


def shared_night(factory: Any) -> History:
    if id(factory) not in _NIGHTS:
        _NIGHTS[id(factory)] = make_night(factory.mktemp("night"))
    return _NIGHTS[id(factory)]


def test_the_money_and_the_attempts_are_those_of_the_moment(tmp_path: Path) -> None:
    history = make_night(tmp_path)
    early, later, end = (moment(history, at(minutes)) for minutes in (15, 35, 70))
    assert [snapshot.money.spent for snapshot in (early, later, end)] == [0, 30, 60]
    assert [snapshot.trials[0].call for snapshot in (early, later, end)] == ["fc-1", "fc-2", "fc-2"]
    assert [snapshot.trials[0].attempts_used for snapshot in (early, later, end)] == [1, 2, 2]
    assert [snapshot.trials[0].step for snapshot in (early, later, end)] == [5, 25, 50]
    assert early.money.committed == 20, "launched and not known to be done: its bound counts"
    assert end.money.committed == 0


def test_the_night_of_a_session_is_without_what_others_did_in_the_same_folder(tmp_path: Path) -> None:
    make_night(tmp_path)
    put(tmp_path / "runs" / "theirs-events.jsonl", 500, json.dumps({"at": text(500), "text": "of theirs"}) + "\n")
    put(tmp_path / "runs" / "r8-z" / "00-trial-0" / "result.json", 500, {"ok": True})
    history = open_history(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases")
    assert history.ends_at == at(70)
    assert at(500) not in {happening.at for happening in history.happenings}


def test_what_the_ledger_settled_is_committed_no_longer(tmp_path: Path) -> None:
    make_night(tmp_path)
    unit = {"unit": "trial/r5-a/trial-0"}
    lines = [
        {"event": "wanted", "at": at(9).timestamp(), "orders": {unit["unit"]: {"name": "r5-a", "kind": "trial"}}},
        {"event": "intent", "at": at(9).timestamp(), **unit},
        {"event": "settled", "at": at(40).timestamp(), "outcome": "failed", **unit},
        {"event": "intent", "at": at(50).timestamp(), **unit},
        {"event": "settled", "at": at(62).timestamp(), "outcome": "done", **unit},
    ]
    put(tmp_path / "runs" / "ledger.jsonl", 62, "".join(f"{json.dumps(line)}\n" for line in lines) + '{"event": "se')
    history = History(load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases"))
    committed = [moment(history, at(minutes)).money.committed for minutes in (8, 15, 45, 55, 65)]
    assert committed == [0, 20, 0, 20, 0]


def test_a_launch_without_a_time_makes_what_was_committed_unknown_and_not_zero(tmp_path: Path) -> None:
    make_night(tmp_path)
    (tmp_path / "runs" / "r5-a.spawn.json").unlink()
    history = History(load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases"))
    snapshot = moment(history, at(35))
    assert snapshot.money.committed is None
    assert snapshot.money.headroom is None
    assert not snapshot.money.committed_complete
    assert any("the launches of 1 studies" in alert.text for alert in snapshot.alerts)


def test_a_session_that_was_opened_for_the_round_since_is_not_taken_for_one_of_then(tmp_path: Path) -> None:
    make_night(tmp_path)
    spec = "experiments/rounds/r6.json"
    put(tmp_path / spec, 5, {"round": 6, "studies": {"r6-a": {}}})
    history = History(load_night(resolve("r6", root=tmp_path, cwd=tmp_path), tmp_path / "leases"))
    put(tmp_path / "runs" / "n1-state.json", 90, {"session": "n1", "rounds": [spec]})
    assert resolve("r6", root=tmp_path, cwd=tmp_path).session == "n1"
    snapshot = moment(history, at(75))
    assert (snapshot.session, snapshot.state_file) == (None, None)


def test_the_night_is_read_without_a_path_that_leads_out_of_it() -> None:
    assert kind_of("runs/r5-a.spawn.json") is not None
    for path in ("../runs/r5-a.spawn.json", "runs/../x-state.json", "/runs/n1-state.json", "runs/.env", "etc/passwd",
                 "runs/r5-a/00-trial-0/checkpoint/weights.pt"):  # fmt: skip
        assert kind_of(path) is None


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_the_player_runs_pauses_and_stops_at_events_and_incidents(tmp_path: Path) -> None:
    history, clock = make_night(tmp_path), Hand()
    player = Player(lambda: history, speed=60, monotonic=clock)
    assert player.observe().taken_at == at(0)
    clock.s = 5
    snapshot = player.observe()
    assert snapshot.taken_at == at(5)
    assert snapshot.replay is not None
    assert (snapshot.replay.playing, snapshot.replay.speed) == (True, 60)
    player.command("incident")
    clock.s = 500
    assert player.observe().taken_at == at(20), "who steps stands still"
    player.command("event")
    assert player.observe().taken_at == at(21)
    player.command("event_back")
    player.command("event_back")
    assert player.observe().taken_at == at(9)
    player.command("faster")
    player.command("pause")
    clock.s = 501
    assert player.observe().taken_at == at(11)
    player.command("scrub 3600000")
    snapshot = player.observe()
    assert snapshot.taken_at == history.ends_at
    player.command("incident_back")
    assert player.observe().taken_at == at(20)
    player.command("scrub -3600000")
    assert player.observe().taken_at == at(0)


def test_a_jump_past_the_end_reads_what_was_written_meanwhile(tmp_path: Path) -> None:
    make_night(tmp_path)

    def read() -> History:
        return History(load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases"))

    player = Player(read, start=lambda night: night.ends_at, playing=False, monotonic=Hand())
    assert player.observe().taken_at == at(70)
    player.command("event")
    assert player.observe().taken_at == at(70), "nothing came"
    put(
        tmp_path / "runs" / "autoresearch-sessions.jsonl",
        80,
        json.dumps({"at": text(80), "kind": "k", "text": "new"}) + "\n",
    )
    player.command("event")
    snapshot = player.observe()
    assert snapshot.taken_at == at(80)
    assert snapshot.events[-1].text == "new"


def test_a_moment_is_made_once_while_time_stands_still(tmp_path: Path) -> None:
    player = Player(lambda: make_night(tmp_path), playing=False, monotonic=Hand())
    first = player.observe()
    player.command("faster")
    second = player.observe()
    assert second.replay is not None
    assert second.replay.speed == 120
    assert second.studies is first.studies
    assert second.changed == frozenset()


def test_playing_passes_over_hours_in_which_nothing_was_written(tmp_path: Path) -> None:
    make_night(tmp_path)
    os.utime(tmp_path / "runs" / "n1-state.json", (at(10_000).timestamp(),) * 2)
    history, clock = History(load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases")), Hand()
    player = Player(lambda: history, start=lambda _: at(62), speed=60, monotonic=clock)
    player.observe()
    clock.s = 0.5
    assert player.observe().taken_at == at(62.5), "what just happened can be looked at"
    clock.s = 2
    assert player.observe().taken_at == at(9_999), "a minute before the state was written"
    clock.s = 3
    assert player.observe().taken_at == at(10_000)


def test_the_keys_of_a_replay_are_only_there_in_one_and_nothing_acts_in_it() -> None:
    replayed = {binding.id for binding in BINDINGS if binding.replays}
    assert replayed
    assert not replayed & {binding.id for binding in of_live(BINDINGS)}
    assert replayed < {binding.id for binding in of_replay(BINDINGS)}
    assert not any(binding.acts for binding in of_replay(BINDINGS))
    assert "log" not in {binding.id for binding in of_replay(BINDINGS)}


def test_one_moment_is_printed_as_json_and_as_tables(tmp_path: Path, capsys: Any) -> None:
    make_night(tmp_path)
    assert main(["replay", "n1", "--root", str(tmp_path), "--at", "20:35", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["taken_at"] == "2026-03-01T20:35:00Z"
    assert printed["studies"]["r5-a"]["trials"]["trial-0"]["step"] == 25
    assert printed["replay"]["begins_at"] == "2026-03-01T20:00:00Z"
    assert main(["replay", "n1", "--root", str(tmp_path), "--at", "2026-03-01T20:15Z", "--once"]) == 0
    assert "REPLAY of 2026-03-01 20:15:00Z" in capsys.readouterr().out
    assert main(["replay", "n1", "--root", str(tmp_path), "--at", "soon", "--once"]) == 2
