"""Scores of models and of the base: the base first and three times, the final on hidden items and three draws."""

import asyncio
import hashlib
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.evaluation import Asked, Evaluation, Evaluator, Split, checked
from kev.autorl.noise import GRADES, Baseline, baseline_of, half_width, label_of
from kev.autorl.run import Run
from kev.autorl.submissions import Ledger, Submission
from kev.errors import DamagedFile, KevError, NotFound, Refused
from kev.model.tensors import Tensor
from kev.records.base import read_record
from kev.text import shorten, visible

BASELINES = "baselines"
MAX_WORDS = 2000
GRADED = ("gain", "tie", "loss", "no change")
"""Verdicts of runs that succeeded: something was submitted and graded."""


class Measurer:
    """Grades with one evaluator; the base's grades are kept for every run of the same task and the same weights."""

    def __init__(self, run: Run, evaluator: Evaluator, base: Mapping[str, Tensor]) -> None:
        self._run = run
        self._evaluator = evaluator
        self._base = base

    async def grade(self, asked: Asked) -> Evaluation:
        """One grading, failed closed: whatever goes wrong is its error, in a line that is safe to show."""
        try:
            found = checked(await self._evaluator.evaluate(asked))
        except (KevError, OSError) as error:
            found = Evaluation(benchmark=self._run.task, model_path=str(asked.model), score=None, error=str(error))
        return found if found.error is None else found.model_copy(update={"error": in_words(found.error)})

    async def measure_base(self, split: Split) -> Baseline:
        """What the base scores on a split. Raises Refused where it cannot be graded; that is not kept."""
        name = await asyncio.to_thread(self._name, split)
        path = self._run.shared / BASELINES / f"{name}.json"
        try:
            return read_record(path, Baseline)
        except (NotFound, DamagedFile):
            pass
        grades, items = [], 0
        for seed in range(GRADES):
            found = await self.grade(Asked(self._run.base, split, seed, self._run.gpus[:1]))
            if found.score is None:
                raise Refused(f"the base could not be graded ({found.error})")
            grades.append(found.score)
            items = found.items
        measured = baseline_of(grades, items)
        await asyncio.to_thread(files.write_atomic, path, files.dump_json(measured.to_json()))
        return measured

    def label(self, found: Evaluation, baseline: Baseline) -> str:
        """What a score on the validation items is against the base."""
        assert found.score is not None
        half = max(baseline.half_width, half_width([found.score] * GRADES, found.items))
        return label_of(found.score, baseline.score, half)

    async def final(self, ledger: Ledger, choice: Submission | None, model: Path | None) -> dict[str, Any]:
        """The verdict: `choice`, whose sealed copy is `model`, against the base on three draws of hidden items."""
        facts = self._facts(ledger)
        if choice is None or choice.grade is None or model is None:
            return facts
        facts["submission_id"] = choice.number
        if choice.grade.get("label") == "no change":
            return facts | {"verdict": "no change", "improvement": 0.0}
        try:
            base = await self.measure_base("hidden")
        except Refused as error:
            return facts | {"verdict": "not graded", "error": in_words(error)}
        grades = []
        for seed in range(GRADES):
            found = await self.grade(Asked(model, "hidden", seed, choice.gpus))
            if found.score is None:
                return facts | {"verdict": "not graded", "error": found.error}
            grades.append(found.score)
        score = statistics.fmean(grades)
        # All draws together are what was counted; a gain has to pass the wider of both sides' intervals.
        counted = GRADES * base.items
        half = max(half_width(base.grades, counted), half_width(grades, counted))
        return facts | {
            "score": round(score, 6),
            "grades": grades,
            "baseline": round(base.mean, 6),
            "baseline_grades": base.grades,
            "half_width": half,
            "improvement": round(score - base.mean, 6),
            "verdict": label_of(score, base.mean, half),
        }

    def _facts(self, ledger: Ledger) -> dict[str, Any]:
        best = ledger.best()
        return {
            "rules": self._run.rules,
            "task": self._run.task,
            "evaluator": self._evaluator.identity,
            "submissions": len(ledger.submissions),
            "errors": sum(each.error is not None for each in ledger.submissions.values()),
            "tampering": list(ledger.tampering),
            "validation": {
                "baseline_score": ledger.baseline_score,
                "half_width": None if ledger.baseline is None else ledger.baseline.half_width,
                "best": None if best is None else best.to_json(),
            },
            "submission_id": None,
            "score": None,
            "grades": [],
            "baseline": None,
            "baseline_grades": [],
            "half_width": None,
            "improvement": None,
            "verdict": "no submission",
        }

    def _name(self, split: Split) -> str:
        content = ":".join(f"{name}={tensor.sha256()}" for name, tensor in sorted(self._base.items()))
        return hashlib.sha256(f"{self._evaluator.identity}|{split}|{content}".encode()).hexdigest()


def in_words(error: object) -> str:
    """An error as a line that can be stored and shown."""
    return shorten(visible(str(error)), MAX_WORDS)
