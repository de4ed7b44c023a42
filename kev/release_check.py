"""Whether any recipe of a study is ready to be proposed: every gate passed, in at least two trials."""

import hashlib
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kev.errors import KevError, NotFound
from kev.recipes import knobs_text, recipe_key
from kev.trials import Trial, find_trials

TRIALS_NEEDED = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a study says about one recipe. `reasons` is empty exactly for a candidate."""

    recipe: str
    """The first digits of the sha256 of the whole recipe, which tells recipes of one base apart."""
    base: str | None
    knobs: str
    trials: list[str]
    heldout_pairs: dict[str, float | None]
    reasons: list[str]

    @property
    def candidate(self) -> bool:
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "candidate": self.candidate}

    def __str__(self) -> str:
        state = "CANDIDATE" if self.candidate else "no: " + "; ".join(self.reasons)
        return f"{self.base or 'unknown base'} [{self.recipe}] {self.knobs or 'defaults'}: {state}"


def release_check(runs: Path, study: str) -> tuple[list[Verdict], list[KevError]]:
    """A verdict for every recipe of `study`, in the order of their trials, and the results that are damaged.

    Raises NotFound for a study that is not there or has no trial with a result.
    """
    trials, damaged = find_trials(runs, study)
    if not trials and not damaged:
        raise NotFound(f"{runs / study}: no trial has a result yet")
    recipes: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        # A trial without a configuration is a recipe of its own: nothing says what it shares with another.
        recipes[recipe_key(trial.config) if trial.config else trial.id].append(trial)
    return [_verdict(key, members) for key, members in recipes.items()], damaged


def _verdict(key: str, trials: list[Trial]) -> Verdict:
    config = trials[0].config
    reasons = [reason for trial in trials for reason in _reasons(trial)]
    if len(trials) < TRIALS_NEEDED:
        reasons.append(f"{len(trials)} trial where {TRIALS_NEEDED} are needed")
    return Verdict(
        recipe=hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:8],
        base=base if isinstance(base := config.get("base"), str) else None,
        knobs=knobs_text(config),
        trials=[trial.name for trial in trials],
        heldout_pairs={t.name: t.figure("transfer", "paired_flip", "both_correct_rate").value for t in trials},
        reasons=reasons,
    )


def _reasons(trial: Trial) -> list[str]:
    if not trial.config:
        return [f"{trial.name} does not say its configuration"]
    checks = trial.find("gates", "checks")
    if trial.find("gates", "passed") is True and isinstance(checks, dict) and all(v is True for v in checks.values()):
        return []
    if not isinstance(checks, dict) or not checks:
        return [f"{trial.name} has no gates"]
    failed = [name for name, passed in checks.items() if passed is not True]
    return [f"{trial.name} fails {', '.join(failed)}" if failed else f"{trial.name} did not pass its gates"]
