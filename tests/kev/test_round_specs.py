"""The registered rounds: valid as they stand, lacking only what nobody has read yet, and described truly in PLAN.md."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kev import baseline
from kev.budget import compute_bound, recorded
from kev.linear import LinearModel, fit
from kev.records.plan import read_plan, snapshot_steps
from kev.rounds.registration import find_section
from kev.rounds.validate import Validation, validate
from kev.suite import open_suite

REPOSITORY = Path(__file__).parents[2]
PLAN = (REPOSITORY / "PLAN.md").read_text()
ROUNDS = (101, 102, 103)


def spec(number: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((REPOSITORY / f"experiments/rounds/r{number}.json").read_text())
    return value


def trained(*names: str) -> LinearModel:
    suites = [open_suite(REPOSITORY / "evals" / name) for name in names]
    return fit(record for suite in suites for record in baseline.read_records(suite, "train"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with rows of the parents, read by the linear baseline."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("evals", "experiments"):
        shutil.copytree(REPOSITORY / name, root / name)
    shutil.copy(REPOSITORY / "PLAN.md", root)
    model = trained("decision-v1")
    done = set()
    for number in ROUNDS:
        [parent] = spec(number)["parents"].values()
        for tag, directory in parent["reads"].items():
            read = spec(number)["reads"][tag]
            if "suite" in read and directory not in done:
                done.add(directory)
                split = read.get("flags", "--split development").removeprefix("--split ")
                baseline.read(model, open_suite(root / read["suite"]), split, root / directory)
        transfer = root / parent["trial"] / "transfer"
        if not transfer.exists():
            baseline.read(model, open_suite(root / "evals/transfer-v1"), "development", transfer)
    return root


def problems(found: Validation) -> list[dict[str, Any]]:
    return [finding for finding in found.to_json()["findings"] if finding["severity"] == "problem"]


@pytest.mark.parametrize("number", ROUNDS)
def test_a_round_is_valid_once_its_parents_have_been_read(checkout: Path, number: int) -> None:
    found = validate(checkout / f"experiments/rounds/r{number}.json", checkout, partitions=True)
    assert problems(found) == []
    assert found.ok


@pytest.mark.parametrize("number", ROUNDS)
def test_as_committed_a_round_lacks_nothing_but_rows_of_its_parents(number: int) -> None:
    found = validate(REPOSITORY / f"experiments/rounds/r{number}.json", REPOSITORY)
    lacking = [finding["message"] for finding in problems(found)]
    assert all(re.match(r"runs/base-08b[^ ]*/rows\.json is not there", message) for message in lacking), lacking


@pytest.mark.parametrize("number", ROUNDS)
def test_the_plan_document_has_a_section_on_the_round_that_names_its_arms_and_its_money(number: int) -> None:
    section = find_section(PLAN, number)
    assert section is not None
    for arm in spec(number)["arms"]:
        assert f"`{arm}`" in section
    for study in spec(number).get("studies", {}).values():
        plan = read_plan(REPOSITORY / study["plan"])
        bound = compute_bound(study["gpu"], study["timeout"], len(plan), any(trial.full_ft for trial in plan))
        assert f"bound ${recorded(bound)}" in section
        assert f"budget ${study['budget']}" in section


def test_the_snapshot_arms_are_the_points_that_the_run_keeps() -> None:
    round103 = spec(103)
    [trial] = read_plan(REPOSITORY / round103["studies"]["r103-08b-full"]["plan"])
    train = open_suite(REPOSITORY / "evals/decision-v1").entry("train").records
    steps = train * trial.epochs // (trial.batch * trial.accum)  # type: ignore[operator]
    assert steps == trial.max_steps
    named = [int(found[1]) for arm in round103["arms"].values()
             if (found := re.search(r"step-(\d{7})/", arm.get("checkpoint", "")))]  # fmt: skip
    assert named == snapshot_steps(trial, steps)


def test_the_baseline_figures_in_the_plan_document_are_what_the_baseline_does(tmp_path: Path) -> None:
    table = re.findall(r"^\| ([a-z-]+-v1) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", PLAN, re.MULTILINE)
    assert len(table) == 5
    models = [trained("decision-v1"), trained("decision-v1", "skills-v1")]
    for name, questions, *accuracies in table:
        for number, (model, accuracy) in enumerate(zip(models, accuracies, strict=True)):
            suite = open_suite(REPOSITORY / "evals" / name)
            clean = baseline.read(model, suite, "development", tmp_path / f"{name}-{number}")["clean"]
            assert str(clean["n"]) == questions
            assert float(accuracy) == pytest.approx(clean["acc"], abs=6e-4), name
