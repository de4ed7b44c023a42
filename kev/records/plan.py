"""A study's plan, `experiments/**/<name>.json`: one to eight trial configurations, each key within its range."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from kev.document import read_value
from kev.errors import DamagedFile
from kev.records.base import Record
from kev.spelling import nearest

MAX_TRIALS = 8
MAX_SNAPSHOTS = 8
SNAPSHOT_FRACTIONS = "0.25,0.5,0.75"
"""Where a full-weight run is kept unless its plan says otherwise; "none" keeps nothing but the end."""
MAX_TOKENS = 1_048_576

Switch = Annotated[int, Field(ge=0, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
NoneShare = Annotated[float, Field(ge=0, le=0.4)]
Steps = Annotated[int, Field(ge=0, le=100_000)]


class TrialConfig(Record):
    """One trial. Absent keys take the defaults below; what depends on several keys is in `plan_problems`."""

    model_config = ConfigDict(strict=True)

    base: Annotated[str, Field(min_length=1)]
    base_revision: str | None = None
    epochs: Annotated[int, Field(ge=1, le=5)] = 1
    seed: Annotated[int, Field(ge=0, le=10_000)] = 0
    lr: Annotated[float, Field(ge=1e-6, le=1e-3)] = 2e-4
    lora: Annotated[int, Field(ge=1, le=64)] = 16
    accum: Annotated[int, Field(ge=1, le=256)] = 8
    batch: Annotated[int, Field(ge=1, le=64)] = 1
    perm_kl: Annotated[float, Field(ge=0, le=2)] = 0
    perm_frac: Share = 0.3
    ord_w: Annotated[float, Field(ge=0, le=2)] = 0
    p_none: NoneShare = 0.1
    p_none_distract: NoneShare = 0.12
    p_distract: NoneShare = 0.15
    p_none_pair: Share = 0
    synthetic_repeat: Annotated[int, Field(ge=1, le=6)] = 1
    public_frac: Annotated[float, Field(ge=0.05, le=1)] = 1.0
    head_lr: Annotated[float, Field(ge=0, le=0.01)] = 0
    """0 means the rate of the rest, `lr`."""
    weight_decay: Annotated[float, Field(ge=0, le=0.3)] = 0.01
    anchor_w: Annotated[float, Field(ge=0, le=5)] = 0
    anchor: str | None = None
    anchor_sources: str | None = None
    label_smoothing: Annotated[float, Field(ge=0, le=0.2)] = 0
    brier_w: Annotated[float, Field(ge=0, le=2)] = 0
    focal_gamma: Annotated[float, Field(ge=0, le=4)] = 0
    dtype: Literal["fp32", "bf16"] = "fp32"
    weights_dtype: Literal["fp32", "bf16"] = "fp32"
    checkpointing: Switch = 0
    option_isolation: Switch = 0
    special_embeddings: Switch = 0
    full_ft: Switch = 0
    length_sort: Switch = 0
    shared_prefix: Switch | None = None
    """None means on exactly when the whole model is trained."""
    head_dim: Literal[128, 256, 512, 1024] = 256
    lora_targets: Literal["all", "dense", "attn", "qv"] = "all"
    max_state: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    row_budget: Annotated[int, Field(ge=0, le=65_536)] | None = None
    max_steps: Steps | None = None
    save_every_steps: Steps | None = None
    snapshot_every_steps: Steps | None = None
    none_pair_max_state: Annotated[int, Field(ge=1)] | None = None
    pass_tokens_max: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    train_sources: str | None = None
    data: str | None = None
    replay: Annotated[int, Field(ge=0, le=20_000)] | None = None
    init_from: str | None = None
    snapshot_fractions: str | None = None
    snapshot_hub_repo: str | None = None
    score_records: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Records of each in-trial read, about: whole groups, always the same; None means all of them."""


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """What is wrong with a plan, and where: the index of the trial and its key, as far as they are known."""

    where: tuple[str | int, ...]
    message: str

    def __str__(self) -> str:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.where)
        return f"{place.lstrip('.')}: {self.message}" if place else self.message


def read_plan(path: Path) -> list[TrialConfig]:
    """The trials of the plan in `path`. Raises NotFound, or DamagedFile with the first thing wrong."""
    value = read_value(path)
    for problem in plan_problems(value):
        raise DamagedFile(path, str(problem))
    return [TrialConfig.model_validate(entry) for entry in value]


def is_full_weight(value: Any) -> bool:
    """Whether any trial of a plan, as JSON, trains the whole model; then the whole study counts as doing so."""
    return isinstance(value, list) and any(isinstance(entry, dict) and entry.get("full_ft") == 1 for entry in value)


def plan_problems(
    value: Any,
    base_revisions: Mapping[str, str] | None = None,
    trainable_sources: Collection[str] | None = None,
) -> list[PlanProblem]:
    """Everything wrong with a plan, as JSON; [] for a good one.

    `base_revisions` are the revisions the suite's manifest pins, {} when it pins none, and None when there is no
    manifest to ask; likewise `trainable_sources`.
    """
    if not isinstance(value, list):
        return [PlanProblem((), "should be a list of trials")]
    if not 1 <= len(value) <= MAX_TRIALS:
        return [PlanProblem((), f"holds {len(value)} trials; a plan has 1 to {MAX_TRIALS}")]
    problems: list[PlanProblem] = []
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            problems.append(PlanProblem((index,), "should be an object"))
            continue
        problems += [
            PlanProblem((index, key), f"is no key of a trial{nearest(key, TrialConfig.model_fields)}")
            for key in entry
            if key not in TrialConfig.model_fields
        ]
        try:
            trial = TrialConfig.model_validate(entry)
        except ValidationError as error:
            problems += [
                PlanProblem((index, *found["loc"]), found["msg"][0].lower() + found["msg"][1:])
                for found in error.errors(include_url=False, include_context=False, include_input=False)
            ]
            continue
        problems += [
            PlanProblem((index, key), message) for key, message in _conflicts(trial, base_revisions, trainable_sources)
        ]
    return problems


def snapshot_steps(trial: TrialConfig, total: int) -> list[int]:
    """The optimizer steps, of `total`, after which a full-weight run keeps a loadable checkpoint."""
    if not trial.full_ft:
        return []
    steps = {math.ceil(round(fraction * total, 6)) for fraction in _fractions(trial)}
    if trial.snapshot_every_steps:
        steps |= set(range(trial.snapshot_every_steps, total, trial.snapshot_every_steps))
    return sorted(step for step in steps if 0 < step < total)


def _fractions(trial: TrialConfig) -> list[float]:
    text = trial.snapshot_fractions if trial.snapshot_fractions is not None else SNAPSHOT_FRACTIONS
    return [] if text == "none" else [float(part) for part in text.split(",")]


Conflict = tuple[str, str]
"""A key and what is wrong with it."""


def _conflicts(
    trial: TrialConfig, base_revisions: Mapping[str, str] | None, trainable: Collection[str] | None
) -> Iterator[Conflict]:
    yield from _revision_conflicts(trial, base_revisions)
    yield from _data_conflicts(trial, trainable)
    yield from _loss_conflicts(trial)
    yield from _weight_conflicts(trial)
    yield from _snapshot_conflicts(trial)


def _revision_conflicts(trial: TrialConfig, base_revisions: Mapping[str, str] | None) -> Iterator[Conflict]:
    given = trial.base_revision
    pinned = (base_revisions or {}).get(trial.base)
    if pinned is not None:
        if given is not None and given != pinned:
            yield "base_revision", f"is {given}, and the suite pins {trial.base} at {pinned}"
    elif given is not None and not re.fullmatch("[0-9a-f]{40}", given):
        yield "base_revision", f"should be 40 hexadecimal digits, not {given!r}"
    elif given is None and base_revisions is not None:
        yield "base_revision", f"is needed: the suite pins no revision of {trial.base}"


def _data_conflicts(trial: TrialConfig, trainable: Collection[str] | None) -> Iterator[Conflict]:
    if trial.data is not None and not (trial.data.startswith("evals/") and trial.data.endswith(".jsonl")):
        yield "data", f"should be a .jsonl file under evals/, not {trial.data!r}"
    if trial.replay is not None and trial.data is None:
        yield "replay", "needs data"
    if trial.init_from is not None and not _is_checkpoint(trial.init_from):
        yield "init_from", f"should be a path under /runs/ or a repository (owner/name), not {trial.init_from!r}"
    if trial.train_sources is not None and trainable is not None:
        unknown = [name for name in trial.train_sources.split(",") if name not in trainable]
        if unknown:
            yield "train_sources", f"names what the suite does not declare trainable: {', '.join(unknown)}"


def _loss_conflicts(trial: TrialConfig) -> Iterator[Conflict]:
    modifiers = [key for key in ("label_smoothing", "brier_w", "focal_gamma") if getattr(trial, key) > 0]
    if len(modifiers) > 1:
        yield modifiers[1], f"cannot be combined with {modifiers[0]}: at most one of them changes the loss"
    if trial.p_none + trial.p_none_distract + trial.p_distract > 1:
        yield "p_none", "p_none, p_none_distract and p_distract add up to more than 1"
    if (trial.anchor is not None) != (trial.anchor_w > 0):
        yield "anchor", "belongs together with an anchor_w above 0"
    if trial.anchor is not None and not trial.anchor.endswith(".json"):
        yield "anchor", f"should be a .json file, not {trial.anchor!r}"
    if trial.none_pair_max_state is not None and trial.p_none_pair == 0:
        yield "none_pair_max_state", "needs a p_none_pair above 0"
    if trial.pass_tokens_max is not None:
        if not trial.length_sort:
            yield "pass_tokens_max", "needs length_sort"
        if trial.row_budget:
            yield "pass_tokens_max", "cannot be combined with row_budget"
        if trial.perm_kl:
            yield "pass_tokens_max", "cannot be combined with perm_kl"


def _weight_conflicts(trial: TrialConfig) -> Iterator[Conflict]:
    if trial.full_ft:
        if trial.weights_dtype != "bf16":
            yield "weights_dtype", "should be bf16 when the whole model is trained"
        return
    for key in ("save_every_steps", "snapshot_every_steps", "snapshot_fractions", "snapshot_hub_repo"):
        if getattr(trial, key) is not None:
            yield key, "needs full_ft"


def _snapshot_conflicts(trial: TrialConfig) -> Iterator[Conflict]:
    if trial.snapshot_hub_repo is not None and not re.fullmatch(r"[\w.-]+/[\w.-]+", trial.snapshot_hub_repo):
        yield "snapshot_hub_repo", f"should be owner/name, not {trial.snapshot_hub_repo!r}"
    if not trial.full_ft:
        return
    try:
        fractions = _fractions(trial)
    except ValueError:
        fractions = [math.nan]
    if not all(0 < fraction < 1 for fraction in fractions):
        yield "snapshot_fractions", 'should be numbers between 0 and 1 with commas between them, or "none"'
        return
    if trial.snapshot_every_steps and not trial.max_steps:
        yield "snapshot_every_steps", "needs max_steps, so that the snapshots can be counted"
        return
    planned = len(snapshot_steps(trial, trial.max_steps)) if trial.max_steps else len(set(fractions))
    if planned > MAX_SNAPSHOTS:
        key = "snapshot_every_steps" if trial.snapshot_every_steps else "snapshot_fractions"
        yield key, f"plans {planned} snapshots; at most {MAX_SNAPSHOTS} are kept"


def _is_checkpoint(text: str) -> bool:
    return text.startswith("/runs/") or re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w./-]+)?", text) is not None
