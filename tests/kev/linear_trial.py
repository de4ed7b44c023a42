"""Trials of the linear model: really trained and scored, without torch."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from linear_scorer import EVALS, LinearScorer

from kev import files
from kev.linear import LinearModel, fit
from kev.records.plan import TrialConfig
from kev.suite import Suite, open_suite
from kev.trial.job import Tools, TrialJob
from kev.trial.study import Study

ROOT = EVALS.parent
CONFIG = {"base": "linear", "base_revision": "0" * 40, "score_records": 60}


@dataclass
class LinearTrialScorer(LinearScorer):
    """The linear model as a trial's checkpoint."""

    dtype: str = "fp32"

    @property
    def measured(self) -> dict[str, Any]:
        return {"requested": "linear", "head_sha256": "0" * 64, "weights_sha256": str(self.model.weights.tolist())}

    def in_context(self, manifest: Mapping[str, Any]) -> "LinearTrialScorer":
        return self

    def environment(self) -> dict[str, Any]:
        return {"backend": "numpy"}


def train_linear(
    config: TrialConfig, records: Sequence[Any], directory: Path, *, resume: bool, clock: Any, options: Any
) -> None:
    """Really trains, on the records it was given; the seed decides how many of them."""
    model = fit(list(records)[: 200 + 100 * config.seed])
    checkpoint = directory / "checkpoint"
    files.write_atomic(checkpoint / "weights.json", files.dump_json(model.weights.tolist()))
    files.write_atomic(checkpoint / "head.pt", b"linear")
    files.write_atomic(
        checkpoint / "training_metrics.json", files.dump_json({"optimizer_steps": 20, "records_seen": 9})
    )


def open_linear(checkpoint: Path) -> LinearTrialScorer:
    return LinearTrialScorer(LinearModel(np.array(files.read_json(checkpoint / "weights.json")), {}))


def tools(**changes: Any) -> Tools:
    return Tools(**{"train": train_linear, "open_scorer": open_linear, "say": lambda _: None, **changes})


def suite(name: str) -> Suite:
    return open_suite(EVALS / name)


def job(directory: Path, **changes: Any) -> TrialJob:
    config = {**CONFIG, **changes}
    return TrialJob(directory, config, suite("decision-v1"), suite("transfer-v1"), ROOT)


def study(tmp_path: Path, name: str = "mine") -> Study:
    return Study(tmp_path / "runs" / name, suite("decision-v1"), suite("transfer-v1"), ROOT)


def write_plan(tmp_path: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(entries))
    return path


def load(path: Path) -> Any:
    return json.loads(path.read_text())
