"""A night in one file: it shows what the session showed, wherever it is opened, and is the same bytes each time."""

import json
import zipfile
from pathlib import Path
from typing import Any

from nights import at, make_night, put

from kevtui.cli import main
from kevtui.observe.snapshot import Snapshot
from kevtui.observe.target import resolve
from kevtui.record.opening import open_bundle
from kevtui.record.packing import pack
from kevtui.record.redaction import Identity
from kevtui.record.target import bundle_at
from kevtui.replay.choice import own
from kevtui.replay.history import History
from kevtui.replay.night import LOG_BYTES, Night, load_night
from kevtui.replay.past import moment

NOBODY = Identity()


def night_at(root: Path) -> Night:
    make_night(root)
    return load_night(resolve("n1", root=root, cwd=root), root / "volumes" / "kev-leases", only_inside=True)


def of_moment(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.title, snapshot.money, snapshot.studies, snapshot.events, snapshot.alerts, snapshot.findings


def test_a_bundle_shows_every_moment_as_the_session_did(tmp_path: Path) -> None:
    night = night_at(tmp_path / "here")
    everything = History(night)
    mine = own(everything)
    assert mine.night.files == night.files, "all of it is of this session"
    assert (
        mine.versions["runs/r5-a/00-trial-0/metrics.jsonl"] is everything.versions["runs/r5-a/00-trial-0/metrics.jsonl"]
    ), "nothing is taken apart twice"
    place = tmp_path / "there" / "n1.zip"
    place.parent.mkdir()
    place.write_bytes(pack(night, NOBODY).data)
    here, there = History(night), History(open_bundle(place))
    assert (there.begins_at, there.ends_at, there.happenings) == (here.begins_at, here.ends_at, here.happenings)
    for minutes in (0, 9, 15, 21, 35, 61, 62, 70):
        assert of_moment(moment(there, at(minutes))) == of_moment(moment(here, at(minutes)))


def test_the_same_night_is_the_same_bytes(tmp_path: Path) -> None:
    assert pack(night_at(tmp_path / "a"), NOBODY).data == pack(night_at(tmp_path / "a"), NOBODY).data


def test_it_opens_without_the_session_and_nothing_is_written(tmp_path: Path, capsys: Any) -> None:
    make_night(tmp_path / "session")
    bundle = tmp_path / "away" / "night.zip"
    bundle.parent.mkdir()
    assert main(["record", "n1", "--root", str(tmp_path / "session"), "-o", str(bundle)]) == 0
    (tmp_path / "session").rename(tmp_path / "gone")
    before = sorted(bundle.parent.iterdir())
    capsys.readouterr()
    assert main(["session", str(bundle), "--read-only", "--once"]) == 0
    assert "REPLAY of 2026-03-01 21:10:00Z" in capsys.readouterr().out
    assert main(["session", str(bundle), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["studies"]["r5-a"]["trials"]["trial-0"]["step"] == 50
    assert main(["replay", str(bundle), "--at", "20:35", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["studies"]["r5-a"]["trials"]["trial-0"]["step"] == 25
    assert main(["session", str(bundle), "--plain"]) == 2
    assert sorted(bundle.parent.iterdir()) == before


def test_what_was_taken_out_and_left_out_is_said(tmp_path: Path, capsys: Any) -> None:
    make_night(tmp_path)
    put(
        tmp_path / "runs" / "r5-a" / "00-trial-0" / "train.log",
        60,
        "token hf_abcdefghijklmnopqrst\nstep 50/50 loss 1.0\n",
    )
    bundle = tmp_path / "n1.zip"
    arguments = ["record", "n1", "--root", str(tmp_path), "-o", str(bundle)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "1 x token" in out
    assert "left out: 1 x contents of predictions and measurements" in out
    assert main([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["changed"] is False, "the same night again changes nothing"
    assert said["taken_out"]["token"] == 1


def test_what_could_not_be_read_is_said_to_be_missing(tmp_path: Path, capsys: Any) -> None:
    make_night(tmp_path)
    (tmp_path / "runs" / "r5-a" / "00-trial-0" / "failed.json").mkdir()
    bundle = tmp_path / "n1.zip"
    assert main(["record", "n1", "--root", str(tmp_path), "-o", str(bundle)]) == 0
    assert "1 x files and folders that could not be read" in capsys.readouterr().out
    assert main(["session", str(bundle), "--once"]) == 0


def test_a_file_that_is_no_bundle_is_never_replaced(tmp_path: Path, capsys: Any) -> None:
    make_night(tmp_path)
    other = tmp_path / "thesis.zip"
    other.write_bytes(b"PK\x03\x04 not a night")
    assert main(["record", "n1", "--root", str(tmp_path), "-o", str(other)]) == 2
    assert other.read_bytes() == b"PK\x03\x04 not a night"
    assert "is no recorded night" in capsys.readouterr().err


def test_a_later_record_of_the_night_replaces_the_earlier_one(tmp_path: Path) -> None:
    make_night(tmp_path)
    bundle = tmp_path / "n1.zip"
    assert main(["record", "n1", "--root", str(tmp_path), "-o", str(bundle)]) == 0
    first = bundle.read_bytes()
    put(tmp_path / "runs" / "n1-events.jsonl", 71, json.dumps({"at": at(71).isoformat(), "kind": "k", "text": "end"}))
    assert main(["record", "n1", "--root", str(tmp_path), "-o", str(bundle)]) == 0
    assert bundle.read_bytes() != first


def test_no_link_is_followed_out_of_the_session(tmp_path: Path) -> None:
    root, outside = tmp_path / "session", tmp_path / "outside"
    make_night(root)
    put(outside / "private.json", 60, {"secret_place": "outside"})
    put(outside / "00-trial-0" / "train.log", 60, "a line from outside\n")
    (root / "runs" / "r9-reads-a.json").symlink_to(outside / "private.json")
    (root / "runs" / "r6-b").symlink_to(outside, target_is_directory=True)
    (root / "runs" / "r5-c.spawn.json").symlink_to("r5-a.spawn.json")
    night = load_night(resolve("n1", root=root, cwd=root), root / "leases", only_inside=True)
    bundle = pack(night, NOBODY)
    paths = {file.path for file in bundle.manifest.files}
    assert "runs/r5-c.spawn.json" in paths, "a link within the session is part of it"
    assert not {path for path in paths if "r9-reads" in path or "r6-b" in path}
    assert bundle.manifest.left_out["links that lead out of the session"] == 2


def test_a_session_whose_runs_lie_on_another_disk_is_recorded(tmp_path: Path) -> None:
    make_night(tmp_path / "disk")
    root = tmp_path / "session"
    root.mkdir()
    (root / "runs").symlink_to(tmp_path / "disk" / "runs", target_is_directory=True)
    night = load_night(resolve("n1", root=root, cwd=root), root / "leases", only_inside=True)
    assert night.links_out == ()
    assert {file.path for file in pack(night, NOBODY).manifest.files} >= {"runs/n1-state.json", "runs/r5-a.spawn.json"}


def test_half_a_token_where_a_long_log_is_cut_is_not_in_it(tmp_path: Path) -> None:
    make_night(tmp_path)
    token = "hf_" + "q7" * 20
    after = ("step 10/50 loss 1.0\n" * LOG_BYTES)[: LOG_BYTES - 20]
    # The last LOG_BYTES begin within the token.
    put(tmp_path / "runs" / "r5-a" / "00-trial-0" / "train.log", 60, f"login with {token}\n{after}")
    night = load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases", only_inside=True)
    night = own(History(night)).night
    (log,) = [held.data for held in night.files if held.path.endswith("train.log")]
    assert log is not None
    assert b"q7" not in log
    assert log.startswith(b"step 10/50 loss 1.0\n")


def test_neither_predictions_nor_weights_nor_an_environment_are_in_it(tmp_path: Path) -> None:
    make_night(tmp_path)
    trial = tmp_path / "runs" / "r5-a" / "00-trial-0"
    put(trial / "result.json", 62, {"provenance": {"environment": {"SHELL": "/bin/zsh"}}, "clean": {"acc": 0.123456}})
    put(trial / "checkpoint" / "weights.pt", 62, "weights")
    put(trial / "transfer" / "rows.json", 62, [{"id": "x", "p": [0.98765]}])
    put(trial / ".env", 62, "A=b")
    bundle = tmp_path / "n1.zip"
    assert main(["record", "n1", "--root", str(tmp_path), "-o", str(bundle)]) == 0
    with zipfile.ZipFile(bundle) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
        names = archive.namelist()
    assert names[0] == "manifest.json"
    for word in (b"0.123456", b"0.98765", b"zsh", b"weights.pt", b".env"):
        assert word not in everything
    assert b"transfer/rows.json" in everything, "that they are there is told"


def test_what_another_session_did_in_the_same_folder_is_not_in_it(tmp_path: Path) -> None:
    make_night(tmp_path)
    runs = tmp_path / "runs"
    put(runs / "theirs-state.json", 60, {"session": "theirs", "authorization_usd": 9, "studies": {"r8-z": {}}})
    put(runs / "theirs-events.jsonl", 60, json.dumps({"at": at(60).isoformat(), "text": "of theirs"}) + "\n")
    put(runs / "theirs-watcher.json", 60, {"host": "their-machine"})
    put(runs / "r8-z.spawn.json", 60, {"name": "r8-z"})
    put(runs / "r8-z" / "00-trial-0" / "train.log", 60, "a line of theirs\n")
    put(runs / "r8-theirs-hard" / "rows.json", 60, [])
    put(runs / "r8-readout" / "round8.json", 60, {"round": 8})
    put(tmp_path / "experiments" / "rounds" / "r8.json", 60, {"round": 8, "studies": {"r8-z": {}}})
    orders = {unit: {"name": unit.split("/")[1]} for unit in ("trial/r8-z/trial-0", "trial/r5-a/trial-0")}
    put(runs / "ledger.jsonl", 60, json.dumps({"event": "wanted", "at": at(9).timestamp(), "orders": orders}) + "\n")
    bundle = tmp_path / "n1.zip"
    assert main(["record", "n1", "--root", str(tmp_path), "-o", str(bundle)]) == 0
    with zipfile.ZipFile(bundle) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"r5-a" in everything
    for word in (b"theirs", b"r8", b"their-machine"):
        assert word not in everything


def test_of_the_ledger_only_what_is_read_is_in_it(tmp_path: Path) -> None:
    order = {"name": "r5-a", "payload": {"prompt": "a private matter"}}
    lines = [{"event": "wanted", "at": at(9).timestamp(), "orders": {"trial/r5-a/trial-0": order}, "who": "me"}]
    make_night(tmp_path)
    put(tmp_path / "runs" / "ledger.jsonl", 9, f'{json.dumps(lines[0])}\n{{"payload": "a private')
    night = load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases", only_inside=True)
    place = tmp_path / "n1.zip"
    place.write_bytes(pack(night, NOBODY).data)
    (ledger,) = [held.data for held in open_bundle(place).files if held.path == "runs/ledger.jsonl"]
    assert b"private" not in (ledger or b"")
    assert b'"name": "r5-a"' in (ledger or b"")


def test_a_damaged_file_stays_damaged(tmp_path: Path) -> None:
    make_night(tmp_path)
    put(tmp_path / "runs" / "r5-a.spawn.json", 21, '{"name": "r5-a", "calls": {"tr')
    night = load_night(resolve("n1", root=tmp_path, cwd=tmp_path), tmp_path / "leases", only_inside=True)
    place = tmp_path / "n1.zip"
    place.write_bytes(pack(night, NOBODY).data)
    (finding,) = moment(History(open_bundle(place)), at(70)).findings
    assert finding.path == "runs/r5-a.spawn.json"
    assert "cut short" in finding.reason


def test_only_a_file_that_begins_like_a_bundle_is_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "b.json").write_bytes(b"{}")
    (tmp_path / "c").mkdir()
    assert bundle_at("a.zip", root=None, cwd=tmp_path) == tmp_path / "a.zip"
    for name in ("b.json", "c", "none", "", "\0"):
        assert bundle_at(name, root=None, cwd=tmp_path) is None
