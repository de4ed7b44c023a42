"""A trial is trained and scored once; what a kill left is gone on with; what changed meanwhile is refused."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from killed import Killed
from linear_scorer import EncodedText
from linear_trial import CONFIG, ROOT, LinearTrialScorer, job, load, open_linear, tools, train_linear

from kev.errors import KevError, Refused
from kev.evaluators import EVALUATOR_FILES, evaluator_hashes, is_evaluator_file
from kev.experiment import SNAPSHOT_FRACTIONS
from kev.records.plan import TrialConfig
from kev.records.provenance import Provenance
from kev.records.result import Result
from kev.trial.job import TrialJob, run_trial
from kev.trial.provenance import config_sha256


def test_a_trial_ends_in_a_result_that_every_reader_of_results_accepts(tmp_path: Path) -> None:
    result = run_trial(job(tmp_path / "00-trial-0"), tools())
    written = load(tmp_path / "00-trial-0" / "result.json")
    assert written == json.loads(json.dumps(result))
    record = Result.model_validate(written)
    assert record.gates is not None and record.transfer is not None and record.training_resources is not None
    assert record.gates.checks.keys() == {
        "complete_coverage", "isolation_and_packing", "transfer_complete", "heldout_pairs_at_least_70pct",
        "transfer_confident_errors_below_10pct",
    }  # fmt: skip
    assert (record.promotable, record.test_evaluated) == (False, False)
    for part in ("calibration", "development", "transfer"):
        names = {path.name for path in (tmp_path / "00-trial-0" / part).iterdir()}
        assert {"predictions.jsonl", "rows.json", "report.json"} <= names
    fit_ = written["calibration_fit"]
    assert fit_ == load(tmp_path / "00-trial-0" / "calibration" / "temperature.json")
    assert fit_["temperature"] == written["temperature"] and "neither served nor shipped" in fit_["role"]
    provenance = Provenance.model_validate(load(tmp_path / "00-trial-0" / "provenance.json"))
    assert provenance.config == {**CONFIG} and provenance.measured_checkpoint is not None
    assert set(evaluator_hashes(ROOT)) <= set(provenance.source_hashes)


def test_the_size_of_in_trial_reads_is_registered_in_the_plan(tmp_path: Path) -> None:
    small = run_trial(job(tmp_path / "a"), tools())["coverage"]
    assert 60 <= small["requested_records"] < 80
    with pytest.raises(Exception, match="score_records"):
        TrialConfig.model_validate({**CONFIG, "score_records": 0})


def test_a_trial_is_run_once(tmp_path: Path) -> None:
    run_trial(job(tmp_path / "a"), tools())
    before = (tmp_path / "a" / "result.json").read_bytes()
    for resume in (False, True):
        with pytest.raises(Refused, match=r"has a result\.json already"):
            run_trial(job(tmp_path / "a"), tools(), resume=resume)
    assert (tmp_path / "a" / "result.json").read_bytes() == before


def test_what_ends_a_trial_is_final_and_written_down(tmp_path: Path) -> None:
    def diverge(*arguments: Any, **settings: Any) -> None:
        raise FloatingPointError("the loss is nan\x1b[31m")

    with pytest.raises(FloatingPointError):
        run_trial(job(tmp_path / "a"), tools(train=diverge))
    assert load(tmp_path / "a" / "failed.json") == {"error": "FloatingPointError: the loss is nan\\x1b[31m"}
    with pytest.raises(Refused, match=r"has a failed\.json already"):
        run_trial(job(tmp_path / "a"), tools(), resume=True)


@dataclass
class DyingScorer(LinearTrialScorer):
    passes: int = 2

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        if not self.passes:
            raise Killed
        self.passes -= 1
        return super().score(encoded)


def test_a_trial_that_was_killed_while_scoring_is_not_trained_again(tmp_path: Path) -> None:
    def dying(checkpoint: Path) -> DyingScorer:
        return DyingScorer(open_linear(checkpoint).model, passes=3)

    with pytest.raises(Killed):
        run_trial(job(tmp_path / "a"), tools(open_scorer=dying))
    assert not (tmp_path / "a" / "failed.json").exists()
    trained: list[Path] = []

    def never(*arguments: Any, **settings: Any) -> None:
        trained.append(tmp_path)

    resumed = run_trial(job(tmp_path / "a"), tools(train=never), resume=True)
    whole = run_trial(job(tmp_path / "b"), tools())
    assert not trained
    assert resumed["clean"] == whole["clean"] and resumed["transfer"]["clean"] == whole["transfer"]["clean"]
    assert len(load(tmp_path / "a" / "provenance.json")["continued"]) == 1
    for part in ("calibration", "development", "transfer"):
        rows = [(tmp_path / name / part / "rows.json").read_bytes() for name in ("a", "b")]
        assert rows[0] == rows[1]


def begun_with(tmp_path: Path, changed: str, *, trained: bool) -> TrialJob:
    """A trial that was begun when one source file had other bytes."""
    begun = job(tmp_path / "a")

    def stop(*arguments: Any, **settings: Any) -> None:
        if trained:
            train_linear(*arguments, **settings)
        raise Killed

    with pytest.raises(Killed):
        run_trial(begun, tools(train=stop))
    path = tmp_path / "a" / "provenance.json"
    provenance = load(path)
    provenance["source_hashes"][changed] = "f" * 64
    path.write_text(json.dumps(provenance))
    return begun


@pytest.mark.parametrize(
    ("changed", "trained", "refused"),
    [
        ("kev/session.py", False, "go on training with other sources"),
        ("kev/session.py", True, None),
        ("kev/metrics/point.py", True, "scored by other evaluator files"),
        ("kev/model/head.py", True, "scored by other evaluator files"),
        ("kev/gone.py", True, None),
    ],
)
def test_a_trial_goes_on_only_with_the_sources_that_decide_its_figures(
    tmp_path: Path, changed: str, trained: bool, refused: str | None
) -> None:
    begun = begun_with(tmp_path, changed, trained=trained)
    if refused is None:
        run_trial(begun, tools(), resume=True)
        provenance = load(tmp_path / "a" / "provenance.json")
        assert provenance["resumed_with_changed_non_evaluator_files"] == [changed]
    else:
        with pytest.raises(Refused, match=refused):
            run_trial(begun, tools(), resume=True)


def test_evaluator_files_are_those_that_decide_a_score() -> None:
    for name in ("kev/metrics/bootstrap.py", "kev/predictors/remote.py", "kev/reads/rows.py", "kev/suite.py",
                 "kev/model/mask.py", "kev/data/render.py", "kev/rounds/comparison.py", "kev/experiment.py",
                 "kev/trial/gates.py", "kev/checkpoint.py"):  # fmt: skip
        assert is_evaluator_file(name)
        assert name in evaluator_hashes(ROOT)
    for name in ("kev/session.py", "kev/budget.py", "kev/serve.py", "kev/records/lease.py", "kev/train/log.py"):
        assert not is_evaluator_file(name)
    assert all((ROOT / name).exists() for name in EVALUATOR_FILES)
    assert SNAPSHOT_FRACTIONS == "0.25,0.5,0.75"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"train_sources": "elsewhere"}, "no record to train on"),
        ({"replay": 5000, "data": "evals/skills-v1/train.jsonl"}, "replay asks for 5,000"),
        ({"data": "evals/transfer-v1/development.jsonl"}, "be trained on"),
        ({"data": "evals/none.jsonl"}, "no such file"),
    ],
)
def test_records_that_may_not_be_trained_on_are_refused_before_anything_is_written(
    tmp_path: Path, config: dict[str, Any], says: str
) -> None:
    with pytest.raises(KevError, match=says):
        run_trial(job(tmp_path / "a", **config), tools())
    assert not (tmp_path / "a").exists()


def test_the_digest_of_a_configuration_is_of_its_compact_json_in_its_own_order() -> None:
    assert config_sha256({"b": 1, "a": [1, 2]}) == config_sha256(json.loads('{"b": 1, "a": [1, 2]}'))
    assert config_sha256({"a": 1, "b": 2}) != config_sha256({"b": 2, "a": 1})
    assert config_sha256({"a": [1]}) == "ff5464c34287e9ec505b9f76573a4cb0bd408c96c6537b458fdd993fc7c615ce"
