"""A training that was interrupted goes on from its newest whole point, or says why it cannot."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from test_training import equal, steps_of, train

from kev import files
from kev.errors import Refused
from kev.train.optimizer import Optimizer
from kev.train.points import list_snapshots

Records = list[dict[str, Any]]


def test_a_continuation_without_a_point_says_that_it_starts_at_0(
    tmp_path: Path, config: dict[str, Any], records: Records
) -> None:
    report = train({**config, "max_steps": 2}, records, tmp_path, resume=True)
    assert report.resumed_from is None
    assert any("starts at step 0" in warning for warning in report.warnings)


@pytest.fixture
def interrupted(tmp_path: Path, full_config: dict[str, Any], records: Records) -> dict[str, Any]:
    """A full-weight run that died at its seventh step, with a point at the sixth."""
    config = {**full_config, "save_every_steps": 3, "snapshot_fractions": "0.5"}
    poisoned = pytest.MonkeyPatch()
    plain, steps = Optimizer.step, 0

    def dying(self: Optimizer, *args: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 7:
            raise KeyboardInterrupt
        return plain(self, *args)

    poisoned.setattr(Optimizer, "step", dying)
    with pytest.raises(KeyboardInterrupt):
        train(config, records, tmp_path)
    poisoned.undo()
    return config


def test_an_interrupted_run_goes_on_and_ends_bit_for_bit_where_it_would_have(
    tmp_path: Path, interrupted: dict[str, Any], records: Records, tmp_path_factory: pytest.TempPathFactory
) -> None:
    report = train(interrupted, records, tmp_path, resume=True)
    alone = train(interrupted, records, tmp_path_factory.mktemp("alone"))
    assert report.resumed_from == 6
    assert equal(report.checkpoint, alone.checkpoint)
    assert [found.step for found in list_snapshots(tmp_path / "snapshots").complete] == [5]
    assert equal(report.snapshots[0], alone.snapshots[0])
    assert [step["attempt"] for step in steps_of(tmp_path)][-4:] == [2, 2, 2, 2]
    assert "resumed from " in (tmp_path / "train.log").read_text()
    assert not (report.checkpoint / "resume").exists()


@pytest.mark.parametrize("change", [{"lr": 5e-4}, {"seed": 3}, {"p_none": 0.2}])
def test_other_arguments_are_refused_by_name(
    tmp_path: Path, interrupted: dict[str, Any], records: Records, change: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=f"other arguments .*{next(iter(change))} "):
        train({**interrupted, **change}, records, tmp_path, resume=True)


def test_other_records_are_refused(tmp_path: Path, interrupted: dict[str, Any], records: Records) -> None:
    with pytest.raises(Refused, match="records_sha256"):
        train(interrupted, [*records[1:], records[0]], tmp_path, resume=True)


def test_what_is_kept_may_change_on_the_way(tmp_path: Path, interrupted: dict[str, Any], records: Records) -> None:
    assert train({**interrupted, "save_every_steps": 4}, records, tmp_path, resume=True).resumed_from == 6


def test_another_number_of_threads_is_said(tmp_path: Path, interrupted: dict[str, Any], records: Records) -> None:
    path = tmp_path / "checkpoint" / "resume" / "step-0000006" / "rank0.pt"
    point = torch.load(path, weights_only=True)
    point["counters"]["threads"] = 12
    torch.save(point, path)
    report = train(interrupted, records, tmp_path, resume=True)
    assert any("12 threads and this one has 1" in warning for warning in report.warnings)
    assert report.threads == 1


def test_a_point_that_cannot_be_read_is_refused_and_named(
    tmp_path: Path, interrupted: dict[str, Any], records: Records
) -> None:
    path = tmp_path / "checkpoint" / "resume" / "step-0000006" / "rank0.pt"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Refused, match=r"no resume point can be read \(.*rank0.pt: cut short"):
        train(interrupted, records, tmp_path, resume=True)


def test_a_point_that_cannot_be_read_gives_way_to_an_older_one(
    tmp_path: Path, interrupted: dict[str, Any], records: Records
) -> None:
    resume = tmp_path / "checkpoint" / "resume"
    newest = resume / "step-0000006" / "rank0.pt"
    older = torch.load(newest, weights_only=True)
    older["counters"]["step"] = 3
    (resume / "step-0000003").mkdir()
    torch.save(older, resume / "step-0000003" / "rank0.pt")
    newest.write_bytes(newest.read_bytes()[:-100])
    report = train(interrupted, records, tmp_path, resume=True)
    assert report.resumed_from == 3
    assert any("going back to step 3: 3 steps are done again" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("part", "key", "value", "words"),
    [
        ("counters", "seen", "24", "its counter seen holds '24'"),
        ("counters", "elapsed", math.nan, "its counter elapsed holds nan"),
        ("counters", "losses", None, "its counter losses holds None"),
        ("optimizer", "moments", None, "its optimizer lacks moments"),
        ("optimizer", "values", [1.0], "its optimizer lacks values"),
    ],
)
def test_a_point_that_holds_what_no_trainer_writes_is_named_with_what_it_is(
    tmp_path: Path, interrupted: dict[str, Any], records: Records, part: str, key: str, value: object, words: str
) -> None:
    path = tmp_path / "checkpoint" / "resume" / "step-0000006" / "rank0.pt"
    point = torch.load(path, weights_only=True)
    point[part][key] = value
    torch.save(point, path)
    with pytest.raises(Refused, match=f"no resume point can be read .*rank0.pt: {words}"):
        train(interrupted, records, tmp_path, resume=True)


def test_a_point_that_holds_another_step_than_its_name_says_gives_way_to_the_one_that_does_not(
    tmp_path: Path, interrupted: dict[str, Any], records: Records
) -> None:
    resume = tmp_path / "checkpoint" / "resume"
    shutil.copytree(resume / "step-0000006", resume / "step-0000009")
    latest = files.read_json(resume / "latest.json")
    (resume / "latest.json").write_text(json.dumps({**latest, "dir": "step-0000009", "step": 9}))
    report = train(interrupted, records, tmp_path, resume=True)
    assert report.resumed_from == 6 and report.steps == 10
    assert any("holds step 6, though its directory is that of step 9" in warning for warning in report.warnings)
    assert any("going back to step 6: 3 steps are done again" in warning for warning in report.warnings)


def test_snapshots_of_another_run_are_not_mixed_with_ours(
    tmp_path: Path, interrupted: dict[str, Any], records: Records
) -> None:
    checkpoint = tmp_path / "snapshots" / "step-0000123" / "checkpoint"
    checkpoint.mkdir(parents=True)
    (checkpoint / "snapshot.json").write_text('{"step": 123, "steps": 500}')
    with pytest.raises(Refused, match="step-0000123, a snapshot of another run"):
        train(interrupted, records, tmp_path, resume=True)
