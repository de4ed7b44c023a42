"""What a sealed submission is worth: the grade of its equal, what its weights say of their origin, or a grading.

Weights that nobody trained are never graded: a copy of the base has the base's score, and a stranger has none.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kev.autorl.evaluation import Asked
from kev.autorl.lineage import Lineage, NotNumbers, trace
from kev.autorl.measuring import Measurer, in_words
from kev.autorl.rejection import Rejected
from kev.autorl.run import Run
from kev.autorl.sealing import Sealed, Sealer
from kev.autorl.submissions import Ledger, Submission
from kev.autorl.weights import find_weights
from kev.errors import DamagedFile, KevError, NotFound
from kev.model.tensors import Tensor


class Judge:
    """Judges the sealed submissions of one run. Raises NotFound or DamagedFile for a known model that is none."""

    def __init__(self, run: Run, sealer: Sealer, measurer: Measurer, base: Mapping[str, Tensor]) -> None:
        self._run = run
        self._sealer = sealer
        self._measurer = measurer
        self._base = base
        self._known = [(each.name, weights_of(each)) for each in run.known]

    async def grade(self, submission: Submission, ledger: Ledger) -> dict[str, Any]:
        """The grade of `submission`, as `Submission.grade` has it."""
        twin = ledger.graded_as(submission.sha256, submission.number)
        if twin is not None and twin.grade is not None:
            same = {key: twin.grade.get(key) for key in ("score", "items", "label", "lineage")}
            return {**same, "same_as": twin.number}
        try:
            model, lineage = await asyncio.to_thread(self._trace, submission.sha256)
        except (KevError, NotNumbers) as error:
            return {"error": in_words(error), "label": "error"}
        said = {"lineage": lineage.to_json()}
        baseline = ledger.baseline
        if lineage.kind == "no change" and baseline is not None:
            return {"score": ledger.baseline_score, "items": baseline.items, "label": "no change", **said}
        if lineage.kind == "foreign" and self._run.rules == "strict":
            return {"error": f"not made from the base: {lineage.words}", "label": "foreign", **said}
        found = await self._measurer.grade(Asked(model.directory, "validation", 0, submission.gpus))
        if found.score is None:
            return {"error": found.error, "label": "error", **said}
        label = "no change" if lineage.kind == "no change" else None
        if label is None and baseline is not None:
            label = self._measurer.label(found, baseline)
        return {"score": found.score, "items": found.items, "label": label, **said}

    def _trace(self, sha256: str) -> tuple[Sealed, Lineage]:
        model = self._sealer.open(sha256)
        tensors = model.weights().tensors
        return model, trace(tensors, self._base, known=self._known, ignore=self._run.ignore_tensors)


def weights_of(directory: Path) -> dict[str, Tensor]:
    """The tensors of a model that is no submission. Raises NotFound, or DamagedFile for one without whole weights."""
    if not directory.is_dir():
        raise NotFound(f"{directory}: no such directory")
    try:
        return find_weights(directory).tensors
    except Rejected as error:
        raise DamagedFile(directory, str(error)) from None
