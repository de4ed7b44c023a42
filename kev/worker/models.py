"""Checkpoints in a container: kev.trial and kev.reads do the work, and what a container owes comes in from outside."""

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev import files
from kev.baseline import read_records
from kev.checkpoint import HEAD, read_head
from kev.clock import Clock
from kev.data.record import DataRecord
from kev.errors import KevError, UsageError
from kev.reads.attempt import Options, read
from kev.reads.records import Selection
from kev.records.plan import TrialConfig
from kev.trial.job import Tools, Train, TrialJob, carry_out, records_to_train
from kev.trial.tools import torch_tools
from kev.worker.manifest import write_manifest, write_with_manifest
from kev.worker.training import CHECKPOINT, TRAINING_METRICS, load_checkpoint

if TYPE_CHECKING:
    from kev.predictors.checkpoint import CheckpointScorer


def is_model(checkpoint: Path) -> bool:
    """Whether a directory holds a checkpoint of a model, and none of a synthetic objective."""
    return (checkpoint / HEAD).exists()


def best_device() -> str:
    """Where this container computes. Raises UsageError where torch is missing."""
    return torch_tools().device


def train_and_score(
    job: TrialJob, found: dict[str, Any], check: Callable[[], None], say: Callable[[str], None], *, resume: bool,
    cards: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Train `job` on so many cards, unless that is done, and score it on one; `found` is its provenance. Returns the
    result.

    `check` is called all the time, and before the result is written. Raises what training and reading raise.
    """

    job = replace(job, config=_pinned(job))
    tools = torch_tools(say=say, before_step=check, complete=_completing(check))
    if cards > 1:
        tools = replace(tools, train=train_on_cards(cards, job, check, tools.device))
    records = records_to_train(job)
    config = TrialConfig.model_validate(dict(job.config))
    if records or not config.full_ft:
        fetch_base(config.base, config.base_revision, say)
    return carry_out(job, records, found, tools, resume=resume)


def rehearse(
    job: TrialJob, found: dict[str, Any], check: Callable[[], None], say: Callable[[str], None], *, clock: Clock,
    train: Train | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train `job` by a synthetic method, unless that is done, and score it as a model is scored. Returns the result,
    which says that it is synthetic."""
    records: Sequence[DataRecord] = []
    if train is None or (job.directory / CHECKPOINT / TRAINING_METRICS).exists():
        # carry_out asks for the head of a model, which a synthetic checkpoint has not, and would train again.
        train = _leave_trained
    else:
        records = read_records(job.suite, "train")
    tools = Tools(train, load_checkpoint, clock=clock, say=say, complete=_completing(check))
    return carry_out(job, records, found, tools, resume=True)


def _leave_trained(*_: object, **_settings: object) -> None:
    """What is there already."""


def measure(
    job: TrialJob, found: dict[str, Any], check: Callable[[], None], say: Callable[[str], None]
) -> dict[str, Any]:
    """Score `job.checkpoint`, which is there, as a trial is scored. Returns the result. Raises what reading raises."""
    assert job.checkpoint is not None
    _fetch_base_of(job.checkpoint, say)
    return carry_out(job, [], found, torch_tools(say=say, complete=_completing(check)), resume=False)


def _completing(check: Callable[[], None]) -> Callable[[Path, bytes], None]:
    """How the file that makes a trial final is written: if the attempt may still, and with the manifest before it."""

    def complete(path: Path, data: bytes) -> None:
        check()
        write_with_manifest(path.parent, path.name, data)

    return complete


def _pinned(job: TrialJob) -> dict[str, Any]:
    """The trial's configuration with the revision that its suite pins, where the plan leaves it to the suite."""
    base, revisions = str(job.config.get("base")), job.suite.manifest.base_revisions or {}
    return {**job.config, "base_revision": job.config.get("base_revision") or revisions.get(base)}


def train_on_cards(cards: int, job: TrialJob, check: Callable[[], None], device: str) -> Train:
    """Training as `kev.train.run_training` does it, by a rank for each of the container's cards.

    Without cards, as in the emulator, the ranks share the cores.
    """
    from kev.train.launch import train_on_ranks

    def train(config: TrialConfig, _records: object, directory: Path, *, resume: bool, **_: object) -> None:
        with tempfile.TemporaryDirectory(prefix="kev-plan-") as place:
            plan = Path(place, "plan.json")
            files.write_atomic(plan, files.dump_json([config.to_json()]))
            arguments = ["--plan", str(plan), "--suite", str(job.suite.directory), "--root", str(job.root),
                         "--out", str(directory), "--device", device, *(["--resume"] if resume else [])]  # fmt: skip
            train_on_ranks(arguments, cards, job.root, check)

    return train


def read_checkpoint(
    checkpoint: Path, selection: Selection, out: Path, say: Callable[[str], None], *,
    name: str, options: Options | None = None, temperature: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Read `selection` with a checkpoint into `out`, and return the report. Raises as `kev.reads.attempt.read`.

    `name` is what the report calls the checkpoint: where the volume is mounted differs from container to container.
    `temperature` replaces that of the checkpoint; 1 is raw.
    """
    from kev.predictors.local import LocalPredictor

    scorer = (
        _open_model(checkpoint, selection, say, temperature) if is_model(checkpoint) else load_checkpoint(checkpoint)
    )
    scorer.run = name
    report = read(LocalPredictor(scorer), selection, out, say, options=options)
    write_manifest(out)
    return report


def _open_model(
    checkpoint: Path, selection: Selection, say: Callable[[str], None], temperature: float | None
) -> "CheckpointScorer":
    from kev.predictors.checkpoint import CheckpointScorer

    _fetch_base_of(checkpoint, say)
    scorer = CheckpointScorer(
        str(checkpoint), manifest=selection.manifest, device=best_device(), temperature=temperature
    )
    for remark in scorer.remarks:
        say(f"!!! {remark}")
    return scorer


def _fetch_base_of(checkpoint: Path, say: Callable[[str], None]) -> None:
    """Bring what an adapter is put on; other checkpoints are complete."""
    from kev.model.layout import ADAPTER

    if (checkpoint / ADAPTER).is_file():
        head = read_head(checkpoint)
        fetch_base(head.base, head.get("base_revision"), say)


def fetch_base(base: str, revision: str | None, say: Callable[[str], None]) -> None:
    """Bring a base of the Hub into the Hub's cache, unless it is there; a directory is taken as it is.

    Raises NotFound for a path that is no directory, and UsageError where the Hub does not give it.
    """
    from kev.model.places import HUB_ID, PATTERNS, locate

    try:
        locate(base, revision)
        return
    except KevError:
        match = HUB_ID.fullmatch(base)
        if match is None:
            raise
    import huggingface_hub

    revision = match["revision"] or revision
    say(f"fetching {match['name']}{f' at {revision}' if revision else ''} from the Hub")
    try:
        huggingface_hub.snapshot_download(match["name"], revision=revision, allow_patterns=PATTERNS)
    except (OSError, ValueError) as error:  # the client's own errors are of both kinds
        reason = re.sub(r"\s+", " ", str(error))[:300]
        raise UsageError(f"base {base}: could not be fetched from the Hub: {reason}") from None
