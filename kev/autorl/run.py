"""What is graded in one run, and by which rules."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kev.autorl.workspace import Workspace
from kev.records.autorl import Rules


@dataclass(frozen=True, slots=True)
class Run:
    """One run, as its grader sees it."""

    workspace: Workspace
    home: Path
    """The grader's own directory for this run, which no workspace holds."""
    shared: Path
    """What runs share, `<root>/.grader`: the secret and the baselines."""
    task: str
    base: Path
    timeout_s: float
    rules: Rules = "strict"
    most_submissions: int = 20
    """Different contents that are graded; repeated ones and failed gradings cost nothing."""
    gpus: tuple[str, ...] = ()
    """What may be asked for; the first is used where nothing is."""
    known: tuple[Path, ...] = ()
    """Published models that nobody may submit as their own."""
    extra_files: frozenset[str] = frozenset()
    """Names beside those of every model that the task's evaluator reads."""
    ignore_tensors: tuple[str, ...] = ()
    """Ends of names of tensors that the task adds to a model."""


def available_gpus(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES names; nothing where it is absent."""
    return tuple(part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip())
