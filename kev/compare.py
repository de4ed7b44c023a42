"""Trials against a reference on its transfer read, by the statistic that rounds register."""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import KevError, NotFound, Refused, UsageError
from kev.metrics import Difference, Resamples, Rows, paired_bootstrap, rows_from_json
from kev.recipes import knobs_text
from kev.trials import Trial, find_trials, read_trial

SHOWN = {
    "dev_acc": ("clean", "acc"),
    "transfer_acc": ("transfer", "clean", "acc"),
    "transfer_brier": ("transfer", "clean", "brier"),
    "transfer_conf_err": ("transfer", "clean", "confident_error_rate"),
    "heldout_pairs": ("transfer", "paired_flip", "both_correct_rate"),
}
MAX_TASKS = 6
"""Tasks whose accuracies are shown: the first of the reference, by name."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """How a difference is measured: accuracy on the transfer rows, over cluster resamples of the records."""

    average: str = "micro"
    samples: int = 2000
    seed: int = 0

    def __str__(self) -> str:
        return (
            f"accuracy on transfer rows, {self.average} average, paired bootstrap of {self.samples:,} resamples of "
            f"records, seed {self.seed}"
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """One trial beside the reference. `missing` says why there is no difference."""

    trial: str
    figures: dict[str, float | None]
    delta: float | None
    ci95: list[float] | None
    missing: str | None
    tasks: dict[str, float | None]
    knobs: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_studies(
    runs: Path, studies: list[str], reference: Path, statistic: Statistic
) -> tuple[list[Compared], list[KevError]]:
    """Every trial of `studies` that has a transfer report against the trial in `reference`, and what is damaged.

    Raises NotFound or DamagedFile for the reference, and NotFound for a study that is not there.
    """
    base = read_trial(reference)
    if not isinstance(base.find("transfer"), dict):
        raise NotFound(f"{reference / 'result.json'}: has no transfer report, so nothing can be compared with it")
    reported = base.find("transfer", "tasks")
    tasks = sorted(reported)[:MAX_TASKS] if isinstance(reported, dict) else []
    difference = Differences(base, statistic)
    compared, damaged = [], []
    for study in studies:
        trials, faults = find_trials(runs, study)
        damaged += faults
        compared += [_compare(trial, difference, tasks) for trial in trials if trial.find("transfer") is not None]
    return compared, damaged


class Differences:
    """Differences from one reference, whose rows and resamples are made once."""

    def __init__(self, base: Trial, statistic: Statistic) -> None:
        self._base = base
        self._average = statistic.average
        self._resamples = Resamples(statistic.samples, statistic.seed)

    @cached_property
    def _reference(self) -> Rows:
        return transfer_rows(self._base)

    def of(self, trial: Trial) -> Difference:
        """The difference of `trial`. Raises NotFound, DamagedFile, BadRows, or Refused for reads of two suites."""
        suites = [side.text("transfer", "suite_sha256") for side in (trial, self._base)]
        if None in suites:
            raise Refused("a transfer report does not name its suite")
        if suites[0] != suites[1]:
            raise Refused("its transfer suite is not the reference's")
        rows = transfer_rows(trial)
        found = paired_bootstrap(rows, self._reference, ["acc"], resamples=self._resamples, average=self._average)
        return found["acc"]


def transfer_rows(trial: Trial) -> Rows:
    """The rows of a trial's transfer read. Raises NotFound, DamagedFile or BadRows."""
    path = trial.directory / "transfer" / "rows.json"
    return rows_from_json(files.read_json(path), str(path))


def _compare(trial: Trial, differences: Differences, tasks: list[str]) -> Compared:
    try:
        difference, missing = differences.of(trial), None
    except KevError as error:
        difference, missing = None, str(error)
    return Compared(
        trial=trial.id,
        figures={name: trial.figure(*path).value for name, path in SHOWN.items()},
        delta=difference.delta if difference else None,
        ci95=difference.ci95 if difference else None,
        missing=missing,
        tasks={task: trial.figure("transfer", "tasks", task, "acc").value for task in tasks},
        knobs=knobs_text(trial.config),
    )


def parse_statistic(average: str, samples: int, seed: int) -> Statistic:
    """A statistic from a command line. Raises UsageError for one that cannot be computed."""
    if not 1 <= samples <= 1_000_000 or seed < 0:
        raise UsageError("--samples is 1 to 1,000,000 and --seed is 0 or more")
    return Statistic(average, samples, seed)
