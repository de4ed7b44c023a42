"""A trial's configuration as the trainer takes it, and what cannot be trained that way, said before anything loads."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kev import files
from kev.errors import DamagedFile, Refused
from kev.records.base import reason_of
from kev.records.plan import TrialConfig, plan_problems
from kev.suite import Suite
from kev.train.examples import Anchors, Example

DEFAULT_MAX_STATE = 384


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Where and how a run is carried out: nothing here changes what is learned, except for the number of threads.

    On one machine, with one version of torch and one number of threads, equal configurations give equal bits.
    """

    device: str = "auto"
    """`cpu`, `cuda`, or `auto`: a GPU where there is one."""
    threads: int | None = None
    """Threads of torch; None means OMP_NUM_THREADS, or the cores of this process shared among its ranks."""
    save_every_minutes: float = 60.0
    """Minutes between resume points, stretched so that at most 5 % of the time is spent on them; 0 for none.

    A plan's `save_every_steps` takes the place of it.
    """
    attempt: int | None = None
    """Number of this attempt, from 1; None counts those that `train.log` tells of."""
    suite_sha256: str | None = None
    holdout: Sequence[str] = ()
    """Sources that were kept out of the records; recorded in the checkpoint."""
    anchors: Path | None = None
    """Where the plan's `anchor` lies, if not at its own path."""
    echo: bool = True
    """Whether lines also go to standard output."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of `head.pt`."""
    before_step: Callable[[], None] | None = None
    """Called before every step; what it raises ends the run, whose last resume point stays."""


def trial_options(config: TrialConfig, suite: Suite, root: Path, **settings: Any) -> TrainingOptions:
    """The options of a trial of `suite`, whose files are under `root`; `settings` are further fields of them."""
    return TrainingOptions(
        suite_sha256=suite.sha256,
        holdout=tuple(suite.manifest.holdout_sources or ()),
        anchors=root / config.anchor if config.anchor is not None else None,
        extra={"data": config.data} if config.data else {},
        **settings,
    )


def parse_config(config: TrialConfig | Mapping[str, Any]) -> TrialConfig:
    """`config` checked as an entry of a plan is. Raises Refused with everything that is wrong with it."""
    value = config.to_json() if isinstance(config, TrialConfig) else dict(config)
    problems = plan_problems([value])
    if problems:
        raise Refused("the configuration cannot be trained: " + "; ".join(str(problem) for problem in problems))
    try:
        return TrialConfig.model_validate(value)
    except ValidationError as error:  # pragma: no cover - plan_problems has seen it
        raise Refused(reason_of(error)) from None


def refuse_conflicts(config: TrialConfig, *, world: int, device: str) -> None:
    """Raise Refused for what the plan's own rules admit and this run cannot do."""
    if config.row_budget and (config.perm_kl or config.anchor_w):
        raise Refused("row_budget splits a micro-batch, over which perm_kl and anchor_w are averaged; leave one out")
    if config.row_budget and world > 1:
        raise Refused("row_budget gives ranks different numbers of passes, and they would wait for ever; leave it out")
    if config.dtype == "bf16" and device not in ("cpu", "cuda"):
        raise Refused(f"dtype bf16 is computed on cpu and cuda, not on {device}")


def trained_arguments(config: TrialConfig, examples: Sequence[Example]) -> dict[str, Any]:
    """Every setting that the weights depend on, defaults spelled out, and the hash of what is trained on."""
    values: dict[str, Any] = config.model_dump(mode="json")
    return values | {"records": len(examples), "records_sha256": digest(examples)}


def read_anchors(path: Path, sources: str | None, records: Iterable[Mapping[str, Any]]) -> Anchors:
    """The teacher's distributions of the file `path`, of the records from the comma-separated `sources`, if given.

    Raises NotFound or DamagedFile.
    """
    content = files.read_json(path)
    targets = content.get("targets") if isinstance(content, dict) else None
    if not isinstance(targets, dict):
        raise DamagedFile(path, "holds no table `targets` of record ids")
    wanted = None if sources is None else set(sources.split(","))
    chosen = {
        str(record["_meta"]["id"]) for record in records if wanted is None or record["_meta"].get("source") in wanted
    }
    anchors: dict[str, dict[str, dict[str, float]]] = {}
    for identity in chosen & targets.keys():
        questions = targets[identity]
        if not isinstance(questions, dict):
            raise DamagedFile(path, f"targets.{identity} is no table of questions")
        anchors[identity] = {name: _masses(path, identity, name, masses) for name, masses in questions.items()}
    return anchors


def _masses(path: Path, identity: str, name: str, masses: Any) -> dict[str, float]:
    if not isinstance(masses, dict):
        raise DamagedFile(path, f"targets.{identity}.{name} is no table of probabilities")
    found = {key: files.as_finite(mass) for key, mass in masses.items()}
    bad = [key for key, mass in found.items() if mass is None or mass < 0]
    if bad:
        raise DamagedFile(path, f"targets.{identity}.{name}.{bad[0]} is no probability")
    return {key: float(mass or 0.0) for key, mass in found.items()}


def digest(examples: Sequence[Example]) -> str:
    """The hash of what is trained on, in its order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr((example.id, example.state, example.asks)).encode(errors="backslashreplace"))
    return digest.hexdigest()
