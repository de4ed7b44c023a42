"""The sample session takes the shapes of real files, tells the whole story, and says that it is made up."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from kev import files
from kev.records.base import read_record
from kev.records.event import Event
from kev.records.intent import ReadIntent
from kev.records.lease import Lease
from kev.records.plan import plan_problems, read_plan
from kev.records.readout import read_readout
from kev.records.rows import read_rows
from kev.records.session import SessionState
from kev.records.spawn import SpawnRecord
from kev.records.spec import RoundSpec
from kev.records.step_metrics import read_step_metrics
from kev.records.watch import WatchRecord
from kevtui.sample.story import Story

NEVER = datetime.min.replace(tzinfo=UTC)


class StoryClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 22, 0, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the whole story."""
    root = tmp_path_factory.mktemp("sample")
    clock = StoryClock()
    for pause_s in Story(root, clock, stretch=1.0).play():
        clock.seconds += pause_s
    assert clock.seconds < 55, "a demo without a terminal should end within a minute"
    return root


def events(root: Path) -> list[Event]:
    lines = files.read_json_lines(root / "runs" / "sample-events.jsonl")
    return [Event.model_validate(line) for line in lines]


def test_every_file_is_one_that_the_records_can_read(played: Path) -> None:
    runs = played / "runs"
    spec = read_record(played / "experiments" / "rounds" / "r7.json", RoundSpec)
    for study in spec.studies.values():
        assert not plan_problems([config.to_json() for config in read_plan(played / study.plan)])
    for name, shape in (("*.spawn.json", SpawnRecord), ("*.watch.json", WatchRecord), ("r7-reads-*.json", ReadIntent)):
        found = list(runs.glob(name))
        assert len(found) >= 3
        for path in found:
            read_record(path, shape)
    assert len([read_record(path, Lease) for path in played.glob("volumes/kev-leases/*/*/attempt.json")]) == 4
    assert all(read_rows(path) for path in runs.glob("*/rows.json"))
    read_record(runs / "sample-state.json", SessionState)
    for path in runs.glob("*/*/metrics.jsonl"):
        reading = read_step_metrics(path.read_bytes())
        assert not reading.damage
        assert not reading.repeats
        for first, second in pairwise(reading.points):
            assert second.step <= first.step or (second.ended or NEVER) > (first.ended or NEVER)


def test_what_a_person_would_open_says_that_it_is_made_up(played: Path) -> None:
    runs = played / "runs"
    opened = [played / "experiments" / "rounds" / "r7.json", runs / "sample-state.json"]
    opened += [runs / "r7-readout" / "round7.json", *runs.glob("*.spawn.json"), *runs.glob("*.watch.json")]
    for path in opened:
        assert json.loads(path.read_text())["sample"] is True, path
    assert json.loads((runs / "sample-state.json").read_text())["simulated"] is True
    for path in [*runs.glob("*/*/train.log"), *runs.glob("*-reads-*.log"), played / "SAMPLE.txt"]:
        assert path.read_text().startswith("SAMPLE"), path


def test_a_trial_that_times_out_is_continued_from_its_resume_point(played: Path) -> None:
    record = read_record(played / "runs" / "r7-9b.spawn.json", SpawnRecord)
    assert record.attempts_used("trial-0") == 2
    log = (played / "runs" / "r7-9b" / "00-trial-0" / "train.log").read_text()
    before, after = log.split("resumed from ")
    kept = int(before.rsplit("committed resume point ")[-1].split()[0])
    assert f"step {kept}," in after.splitlines()[0]
    steps = [
        point.step for point in read_step_metrics((played / "runs/r7-9b/00-trial-0/metrics.jsonl").read_bytes()).points
    ]
    assert steps[-1] == 80
    assert steps.count(kept + 1) >= 1
    assert "timeout" in {event.kind for event in events(played) if event.subject == "r7-9b/trial-0"}


def test_a_read_that_fails_is_launched_again_and_lands(played: Path) -> None:
    told = [event.text for event in events(played) if event.subject == "4b-b" and event.kind == "reads"]
    assert told == ["reads launched: hard, docs, cal", "read r7-4b-b-hard failed; it is launched again",
                    "reads launched: hard"]  # fmt: skip
    assert read_rows(played / "runs" / "r7-4b-b-hard" / "rows.json")


def test_the_read_out_names_one_candidate_as_its_own_figures_demand(played: Path) -> None:
    readout = read_readout(played / "runs" / "r7-readout" / "round7.json").readout
    assert readout.candidates == {"4b": "4b-a", "9b": None, "27b": None}
    passing = readout.arms["4b-a"]
    assert passing.criteria == {"1_hard": True, "2_docs": True, "3_brier": True}
    assert (passing.resolve("hard.acc.lower") or 0) > 0
    failing = readout.arms["9b-a"]
    assert failing.criteria["3_brier"] is False
    assert (failing.resolve("hard.brier.candidate") or 0) > (failing.resolve("hard.brier.parent") or 0) + 0.005


def test_every_lease_is_released_and_money_only_grows(played: Path) -> None:
    for path in played.glob("volumes/kev-leases/*/*/attempt.json"):
        assert read_record(path, Lease).ended is not None
    state = read_record(played / "runs" / "sample-state.json", SessionState)
    metered = [reading.metered_usd for reading in state.readings]
    assert metered == sorted(metered)
    assert len(metered) > 5
    assert metered[-1] - state.baseline_usd < state.authorization_usd
