"""A model is trained, killed, gone on with, scored, calibrated, served and read again: all of it real, and small."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from endpoints import served
from file_module import load_module

from kev.clock import SystemClock
from kev.data.draw import Draw
from kev.data.memos import (
    NOISE,
    OFFERED,
    PLACES,
    ceiling,
    generate_bulletins,
    generate_checked_memos,
    generate_memos,
    solve,
)
from kev.data.part import Part
from kev.predictors.purse import Purse, Tariff
from kev.predictors.remote import Endpoint, RemotePredictor
from kev.reads.attempt import read
from kev.reads.records import select_partition
from kev.records.result import Result
from kev.suite import open_suite

ROOT = Path(__file__).parents[2]
STEPS = 24
KILLED_AT = f"ep0 step 20/{STEPS} "


def load(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_module(ROOT / "scripts" / "demo_train.py")


@pytest.fixture(scope="module")
def demo(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trial that was killed with SIGKILL while it trained, and then gone on with to its result."""
    pytest.importorskip("torch")
    made = script.Demo(tmp_path_factory.mktemp("demo"), script.Size(STEPS * 8, 40, 1, 8, 1, STEPS, 8), print)
    made.prepare()
    command = [sys.executable, "-m", "kev.experiment", "--suite", str(made.suite("memos")), "--out", str(made.study),
               "--plan", str(made.root / "plan.json"), "--device", "cpu"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if line.startswith(KILLED_AT):
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    assert not (made.study / "00-trial-0" / "result.json").exists()
    made.train(resume=True)
    return made


def test_a_killed_training_goes_on_from_its_resume_point_to_a_result(demo: Any) -> None:
    trial = demo.study / "00-trial-0"
    log = (trial / "train.log").read_text()
    assert "resumed from" in log and "step 16, epoch 0" in log
    result = Result.model_validate(load(trial / "result.json"))
    assert result.training_resources is not None and result.training_resources.optimizer_steps == STEPS
    assert result.provenance is not None and result.provenance.continued is not None
    assert result.provenance.measured_checkpoint is not None
    assert result.provenance.measured_checkpoint.inference_temperature == 1.0
    [line] = (demo.study / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["objective"] == result.objective


def test_no_answer_of_the_model_depends_on_what_else_is_asked(demo: Any) -> None:
    checks = load(demo.study / "00-trial-0" / "result.json")["mechanism_checks"]
    assert (checks["n"], checks["passed"], checks["dtype"]) == (8, True, "bf16")


def test_a_temperature_fitted_on_bulletins_is_what_the_checkpoint_is_then_read_at(demo: Any) -> None:
    raw = demo.read("memos", "development", "raw")
    temperature = demo.calibrate()
    after = demo.read("memos", "development", "served")
    assert set(raw.temperature.tolist()) == {1.0} and set(after.temperature.tolist()) == {temperature}
    report = load(demo.root / "runs" / "served-memos-development" / "report.json")
    assert report["calibration_applied"] == (temperature != 1.0)
    assert report["calibration"]["inference_temperature"] == temperature
    assert raw.predicted.tolist() == after.predicted.tolist(), "a temperature changes no answer"
    head = load(demo.checkpoint / "head.json")
    assert head["temperature"] == temperature
    assert [each["suite"] for each in head["temperature_fit"]["fit_rows"]] == ["evals/bulletins-v1"]


def test_a_checkpoint_answers_over_http_what_it_answers_here(demo: Any, tmp_path: Path) -> None:
    from kev.predictors.checkpoint import CheckpointScorer
    from kev.predictors.local import LocalPredictor

    chosen = select_partition(open_suite(demo.suite("memos")), "development").sample(12)
    scorer = CheckpointScorer(str(demo.checkpoint), device="cpu", serving=True)
    read(LocalPredictor(scorer, batch=1), chosen, tmp_path / "here", lambda _: None)
    purse = Purse(tmp_path / "there" / "usage.json", "kev-latest", Tariff(), SystemClock())
    with served(scorer) as address:  # type: ignore[arg-type]  # any scorer will do
        predictor = RemotePredictor(Endpoint(address), purse)
        report = read(predictor, chosen, tmp_path / "there", lambda _: None)
        predictor.close()
    for here, there in zip(load(tmp_path / "here" / "rows.json"), load(tmp_path / "there" / "rows.json"), strict=True):
        assert there["p"] == pytest.approx(here["p"], abs=2e-4)
    assert report["remote"]["served_temperature"] == scorer.temperature


def test_memos_are_labelled_wrongly_as_often_as_is_said_and_never_otherwise() -> None:
    for generate in (generate_memos, generate_bulletins):
        stream = generate(Draw(5, "noise"), Part.named("train"))
        records = [record for _ in range(1500) for record in next(stream)]
        for name in NOISE:
            right = 0
            for record in records:
                facts = (record.meta.model_extra or {})["facts"]
                assert solve(facts)[name] is not None
                right += record.questions[name].label == solve(facts)[name]
            assert right / len(records) == pytest.approx(ceiling(name), abs=0.035)


def test_a_checked_memo_carries_the_solvers_own_labels() -> None:
    stream = generate_checked_memos(Draw(5, "checked"), Part.named("train"))
    for record in [next(stream)[0] for _ in range(100)]:
        facts = (record.meta.model_extra or {})["facts"]
        assert {name: question.label for name, question in record.questions.items()} == solve(facts)


def test_the_answers_stand_in_the_text() -> None:
    stream = generate_memos(Draw(6, "text"), Part.named("train"))
    for record in [next(stream)[0] for _ in range(50)]:
        facts = (record.meta.model_extra or {})["facts"]
        assert facts["size"] in record.state["note"]
        for place in PLACES:
            [named] = [key for key in record.questions[place].keys if f'"{key}"' in record.state["note"]]
            assert named == facts[place] and len(record.questions[place].keys) == OFFERED
        assert ("It was signed." in record.state["note"]) == facts["signed"]
