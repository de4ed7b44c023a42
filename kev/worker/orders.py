"""What a launcher asks a container to do: the one JSON argument of each remote function.

Both sides use the same records, so a launcher cannot send what a container would misread.
"""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError

from kev.errors import UsageError
from kev.records.base import AnyRecord, Number, StrictRecord, reason_of

TRIAL_FUNCTION = "run_trial"
FULL_TRIAL_FUNCTION = "run_full_trial"
SHARDED_TRIAL_FUNCTION = "run_sharded_trial"
BENCHMARK_FUNCTION = "run_bench"
LOCKED_TEST_FUNCTION = "run_locked_test"
RESCORE_FUNCTION = "run_resume"
BLEND_FUNCTION = "run_interpolate"
MIRROR_FUNCTION = "run_mirror"
AGENT_FUNCTION = "run_agent"
HASHES_FUNCTION = "remote_source_hashes"


def trial_function(gpu: str, full_weight: bool) -> str:
    """The remote function that trains: several cards in one container have a machine of another shape."""
    if not full_weight:
        return TRIAL_FUNCTION
    return FULL_TRIAL_FUNCTION if gpu.partition(":")[2] in ("", "1") else SHARDED_TRIAL_FUNCTION


def label_of(index: int, existing: int | None = None) -> str:
    """The label of a plan's trial, counted from 0, or of the checkpoint number `existing` that is only scored."""
    return f"trial-{index}" if existing is None else f"existing-{existing}"


def trial_directory(index: int, existing: int | None = None) -> str:
    """The directory of a trial in its study, of which `index` counts all."""
    return f"{index:02d}-{label_of(index, existing)}"


class Order(StrictRecord):
    """What every order says. A container refuses one whose `sources` are not those it was deployed with."""

    model_config = ConfigDict(strict=True)

    run_id: str
    sources: str
    """`kev.worker.sources.digest` of the launcher's checkout."""
    git_commit: str | None = None


class LeaseEvidence(StrictRecord):
    """A lease that stood still for so long that its holder is over; it holds only while the lease is still this one."""

    claims: int
    nonce: str | None = None
    heartbeat: Number | None = None


class TrialOrder(Order):
    """Train, or go on with, one trial of a study."""

    study: str
    index: Annotated[int, Field(ge=0)]
    config: dict[str, Any]
    """The trial's entry in the plan, as written there."""
    suite: str
    transfer: str | None = None
    nonce: str
    attempt: Annotated[int, Field(ge=1)] = 1
    evidence: LeaseEvidence | None = None
    """What the launcher saw of a lease that was never ended."""
    gpu: str | None = None
    existing: int | None = None
    """The number of a checkpoint that is there and only scored, `config["existing"]`."""

    @property
    def label(self) -> str:
        return label_of(self.index, self.existing)

    @property
    def directory(self) -> str:
        """Of the trial, on the runs volume."""
        return f"{self.study}/{trial_directory(self.index, self.existing)}"

    @property
    def cards(self) -> int:
        """Of the container."""
        return int((self.gpu or "").partition(":")[2] or 1)

    @property
    def full_weight(self) -> bool:
        return self.config.get("full_ft") == 1


class RescoreOrder(Order):
    """Score a trial whose training is done and whose result is not there."""

    study: str
    directory: str
    """Of the trial in its study."""
    suite: str
    transfer: str | None = None


class BenchmarkOrder(Order):
    """Read one partition with one checkpoint."""

    run: str
    suite: str
    """A suite's directory, or a single .jsonl file."""
    name: str
    flags: str = ""


UNGATED = "-ungated"
"""The name of a locked read of a trial whose gates did not pass ends so."""


class LockedOrder(Order):
    """Read the test partitions of the decision and the transfer suite, once."""

    trial: str
    """Path under the runs volume."""
    name: str
    decision: str | None = None
    transfer: str | None = None
    redo_interrupted: bool = False


class BlendOrder(Order):
    """Mix a checkpoint of full weights with another, or with the base it came from."""

    sft: str
    """Path on the runs volume, `/runs/...`."""
    toward: str = ""
    """Another checkpoint, on the runs volume or the Hub; empty for the base."""
    base: str
    revision: str
    alphas: list[str]
    """Shares of `sft`, as they were written."""
    prefix: str
    study: str
    blend_head: bool = False


class MirrorOrder(Order):
    """Copy complete checkpoints to another place."""

    checkpoints: list[str]
    """Directories on the runs volume."""
    repo: str
    """A private repository of the Hub, owner/name, or a directory of a volume, `/hf/...`."""
    force: bool = False
    """Whether one that is there already is copied again."""


class AgentOrder(Order):
    """Give an agent a base model, a task and a fixed time."""

    agent: str
    """One that is shipped, or a folder of a volume, `/hf/...` or `/runs/...`."""
    task: str
    """A task's name, or a folder of a volume."""
    model: str
    """The base: a directory of a volume."""
    name: str
    seconds: Annotated[int, Field(gt=0)]
    """The run's time."""
    submissions: Annotated[int, Field(gt=0)] = 20


BLEND_RECORD = "interpolation.json"
"""Beside each mixed checkpoint, and written last: where it is, the checkpoint is whole."""


def blend_directory(study: str, prefix: str, alpha: str) -> str:
    """Of a mixed checkpoint, on the runs volume: `r20-wise/27b-a-w85` for an alpha of 0.85."""
    return f"{study}/{prefix}-w{int(Decimal(alpha) * 100)}"


def parse_order(payload: object, shape: type[AnyRecord]) -> AnyRecord:
    """The argument of a remote function. Raises UsageError naming the first key that cannot be meant."""
    try:
        return shape.model_validate(payload)
    except ValidationError as error:
        raise UsageError(f"{shape.__name__}: {reason_of(error)}") from None
