"""A whole round without an accelerator: linear models as parent and arms, read, validated and read out for real."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kev import baseline
from kev.linear import LinearModel, fit
from kev.metrics import fit_temperature, metric, pool, rows_from_json, scored
from kev.rounds.readout import readout
from kev.rounds.specs import load_spec
from kev.rounds.validate import validate
from kev.suite import open_suite

REPOSITORY = Path(__file__).parents[2]


def blend(parent: LinearModel, delta: LinearModel, alpha: float) -> LinearModel:
    """The model between the two: `alpha` of the delta's weights."""
    return LinearModel(alpha * delta.weights + (1 - alpha) * parent.weights, delta.priors)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which every rule read of rounds 101 and 102 has been made."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("evals", "experiments"):
        shutil.copytree(REPOSITORY / name, root / name)
    old, new = (
        [r for name in names for r in baseline.read_records(open_suite(root / "evals" / name), "train")]
        for names in (["decision-v1"], ["decision-v1", "skills-v1"])
    )
    parent, delta = fit(old), fit(new)
    blends = {"08b-w85": 0.85, "08b-w70": 0.7, "08b-w50": 0.5}
    for number in (101, 102):
        spec = json.loads((root / f"experiments/rounds/r{number}.json").read_text())
        sides = {"parent": (parent, spec["parents"]["08b"]["reads"], spec["parents"]["08b"]["trial"])}
        for arm, entry in spec["arms"].items():
            directories = {tag: f"runs/r{number}-{arm}-{tag}" for tag in spec["reads"]}
            sides[arm] = (blend(parent, delta, blends.get(arm, 1.0)), directories, entry.get("trial"))
        for model, directories, trial in sides.values():
            read_rule(root, spec, model, directories, trial)
    return root


def read_rule(
    root: Path, spec: dict[str, Any], model: LinearModel, directories: dict[str, str], trial: str | None
) -> None:
    jobs = []
    for tag, entry in spec["reads"].items():
        flags = entry.get("flags", "--split development")
        if "suite" in entry and flags != "--allow-test":
            jobs.append((entry["suite"], flags.removeprefix("--split "), directories[tag]))
    if trial is not None:
        jobs.append(("evals/transfer-v1", "development", f"{trial}/transfer"))
    for suite, split, directory in jobs:
        if not (root / directory).exists():
            baseline.read(model, open_suite(root / suite), split, root / directory)


def rows(root: Path, directory: str) -> Any:
    return rows_from_json(json.loads((root / directory / "rows.json").read_text()), directory)


@pytest.mark.parametrize("number", [101, 102])
def test_a_round_that_is_valid_and_read_is_complete_and_decided_by_its_rule(root: Path, number: int) -> None:
    path = root / f"experiments/rounds/r{number}.json"
    assert validate(path, root).ok
    loaded = load_spec(path, root)
    found = readout(loaded.spec, root)
    for arm in found["arms"].values():
        assert arm["complete"] and arm["missing"] == []
        assert arm["passed"] == all(arm["criteria"].values())
        assert None not in arm["criteria"].values()
    passing = [name for name, arm in found["arms"].items() if arm["passed"]]
    assert sorted(found["ranking"]["08b"]) == sorted(passing)
    assert found["candidates"]["08b"] == (found["ranking"]["08b"][0] if passing else None)


def test_what_was_trained_on_the_skills_gains_on_them_by_the_difference_of_accuracies(root: Path) -> None:
    found = readout(load_spec(root / "experiments/rounds/r101.json", root).spec, root)
    mine, theirs = (
        metric(scored(rows(root, directory)), "acc") for directory in ("runs/r101-08b-a-skills", "runs/base-08b-skills")
    )
    assert mine is not None and theirs is not None
    panel = found["arms"]["08b-a"]["panels"]["skills"]["acc"]
    assert panel["delta"] == pytest.approx(mine - theirs)
    assert panel["ci95"][0] < panel["delta"] < panel["ci95"][1]
    assert panel["delta"] > 0.1


def test_arms_without_rows_of_their_own_take_their_temperature_from_the_pool(root: Path) -> None:
    found = readout(load_spec(root / "experiments/rounds/r102.json", root).spec, root)
    for name, arm in found["arms"].items():
        reads = [(tag, rows(root, f"runs/r102-{name}-{tag}")) for tag in ("stockcal", "countscal")]
        pooled = pool(reads, sources={}, exclude=set())
        assert arm["temperature"] == fit_temperature(pooled.rows).temperature
        assert arm["temperature_fit"]["questions"] == len(scored(pooled.rows))
