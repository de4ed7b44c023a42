"""A round's spec, `experiments/rounds/r<N>.json`: the registered studies, reads, parents, arms, rule and stages.

The fields of these classes are also the list of keys a spec may have: validation names any other key.
All paths in a spec are relative to the root of the checkout. Templates accept {round}, {arm}, {size} and {tag}.
"""

import re
from typing import Annotated, Any, TypeGuard

from pydantic import Discriminator, Field, PlainValidator, Tag
from pydantic_core import PydanticCustomError

from kev.errors import Refused
from kev.files import as_finite
from kev.records.base import Money, StrictRecord

DEFAULT_ARM_READS = "runs/r{round}-{arm}-{tag}"
"""Where an arm's reads lie unless the spec or the arm says otherwise."""

DEFAULT_GPU = "H100"
DEFAULT_ALPHAS = "0.85,0.70,0.50"
STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
"""Of a study, and of whatever else names a directory of the runs volume."""


def _is_number(value: object) -> TypeGuard[int | float]:
    # A JSON number may be larger than any float; 1e999 reads as infinity.
    return as_finite(value) is not None


def _number(value: object) -> int | float:
    if not _is_number(value):
        raise PydanticCustomError("number", "should be a number")
    return value


def _card(value: object) -> str:
    """A name, with a price or not; anything else is refused in the words in which one without a price is."""
    if isinstance(value, str):
        return value
    from kev.budget import parse_gpu

    try:
        parse_gpu(value)
    except Refused as error:
        # As a value and not as the template, in which braces of a refused object would be fields.
        raise PydanticCustomError("card", "{reason}", {"reason": str(error)}) from None
    raise AssertionError("only a name has a price")


def _number_or_path(value: object) -> int | float | str:
    if not isinstance(value, str) and not _is_number(value):
        raise PydanticCustomError("number_or_path", "should be a number, or the path of one")
    return value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _path_or_pair(value: Any) -> str | list[str]:
    if isinstance(value, str) or (_is_texts(value) and len(value) == 2):
        return value  # type: ignore[no-any-return]
    raise PydanticCustomError("path_or_pair", "should be a path, or a list of two paths for their difference")


def _text_or_texts(value: Any) -> str | list[str]:
    if isinstance(value, str) or _is_texts(value):
        return value  # type: ignore[no-any-return]
    raise PydanticCustomError("text_or_texts", "should be a string, or a list of strings")


def _directories(value: Any) -> str | dict[str, str]:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return value
    raise PydanticCustomError("directories", "should be a template, or an object of one directory per read tag")


def _length_kind(value: object) -> str | None:
    return "flag" if isinstance(value, bool) else "setting" if isinstance(value, dict | ByLength) else None


Number = Annotated[int | float, PlainValidator(_number)]
NumberOrPath = Annotated[int | float | str, PlainValidator(_number_or_path)]
PathOrPair = Annotated[str | list[str], PlainValidator(_path_or_pair)]
TextOrTexts = Annotated[str | list[str], PlainValidator(_text_or_texts)]
Directories = Annotated[str | dict[str, str], PlainValidator(_directories)]
"""A template, or one directory per read tag."""


class SpecRecord(StrictRecord):
    """Part of a spec. Nothing is coerced: "40" is no budget, and true is no number."""


class Study(SpecRecord):
    """One study to train: a plan of trials on one suite, with what each container may use."""

    plan: str
    suite: str
    transfer: str
    gpu: Annotated[str, PlainValidator(_card)]
    """A type, or a type and a count in one container: `H200`, `H200:8`."""
    timeout: int
    """Seconds a container may run."""
    budget: Money
    """What the study may cost at worst."""


class Read(SpecRecord):
    """How one tag is read: a benchmark of a suite, or the locked test beside a decision suite."""

    suite: str | None = None
    flags: str | None = None
    """Further switches of `kev.benchmark`, in one string: `--allow-test`, `--split calibration`."""
    entrypoint: str = "benchmarks"
    decision: str | None = None
    """The decision suite of a locked test."""


class Parent(SpecRecord):
    """The checkpoint that arms are compared with, and where its reads lie."""

    trial: str
    checkpoint: str | None = None
    reads: Directories
    pooled: bool = False
    """Whether its temperature is fitted on the round's pool instead of its own development rows."""
    transfer_read: str | None = None


class Arm(SpecRecord):
    """One candidate: a trial of a study, or a bare checkpoint."""

    trial: str | None = None
    checkpoint: str | None = None
    parent: str
    reads: Directories | None = None
    select: bool = True
    """False for an arm that is reported and never becomes the candidate."""
    transfer_read: str | None = None
    """A tag; null, where it is written, means the trial's own transfer read whatever the round says."""
    trained_on: list[str] | None = None


class TemperatureInterval(SpecRecord):
    """The bootstrap interval reported beside a pooled temperature."""

    level: Number = 0.9
    samples: int = 2000
    seed: int = 0


class Pool(SpecRecord):
    """Held-out rows on which the arms' served temperatures are fitted."""

    reads: list[str]
    sources: dict[str, list[str]] | None = None
    exclude_reads: list[str] | None = None
    ci: TemperatureInterval | None = None


class ExcludeFile(SpecRecord):
    """A file of ids, sources and tasks to leave out; registered by hash, since it may be private."""

    path: str
    sha256: str


class ByLength(SpecRecord):
    """Length buckets of a panel."""

    edges: list[int] | None = None
    """Increasing multiples of 1024 tokens."""
    tokenizer: list[str] | None = None
    """Name and revision."""


LengthBuckets = Annotated[
    Annotated[bool, Tag("flag")] | Annotated[ByLength, Tag("setting")],
    Discriminator(
        _length_kind,
        custom_error_type="by_length",
        custom_error_message="should be true, or an object of edges and tokenizer",
    ),
]


class Panel(SpecRecord):
    """The rows of one or more reads, filtered, and what is computed on them."""

    reads: list[str]
    metrics: list[str] = Field(default_factory=list)
    """Each gets both sides' values and the paired interval."""
    report: list[str] = Field(default_factory=list)
    """Each gets both sides' values only."""
    source: TextOrTexts | None = None
    exclude_sources: list[str] | None = None
    exclude_tasks: list[str] | None = None
    exclude_file: ExcludeFile | None = None
    versus: dict[str, str] | None = None
    """Directories of reference rows, scored as saved, by reference name."""
    by_length: LengthBuckets | None = None
    optional: bool = False


class Criterion(SpecRecord):
    """`left op right + plus`, on values of the report."""

    left: PathOrPair
    op: str
    right: NumberOrPath
    plus: Number | None = None


class RankKey(SpecRecord):
    """One key that orders the passing arms; several paths are summed."""

    by: TextOrTexts
    order: str = "desc"


class Rule(SpecRecord):
    """What is computed for every arm, and what makes one pass."""

    panels: dict[str, Panel]
    unknowable: str | None = None
    criteria: dict[str, Criterion]
    rank: list[RankKey] = Field(default_factory=list)


class Stage(SpecRecord):
    """One confirmation step of the candidate."""

    candidate_reads: Directories
    parent_reads: Directories | None = None
    read_timeout: int | None = None
    """Seconds for every read of this stage."""
    panels: dict[str, Panel]
    unknowable: str | None = None
    criteria: dict[str, Criterion]


class Note(SpecRecord):
    """A block that people read and no rule depends on: its unknown keys deserve a warning, not a refusal."""


class RoundBudget(Note):
    """The round's own ceiling and how it was reckoned, in US dollars."""

    hard_cap: Money | None = None
    metered_start: Money | None = None
    cycle: str | None = None
    """The billing month of `metered_start`, `2026-10`."""
    training_bound: Money | None = None
    construction_bound: Money | None = None
    screen_reads_bound: Money | None = None
    gpu_checks_bound: Money | None = None
    failed_start_reserve: Money | None = None
    screen_total_bound: Money | None = None
    long_read_bound: Money | None = None
    long_admission: str | None = None


class Recovery(Note):
    """What replaced a study that failed before it trained."""

    failed_study: str | None = None
    failed_call: str | None = None
    failed_at: str | None = None
    reason: str | None = None
    replacement_study: str | None = None
    rule: str | None = None


class Blend(SpecRecord):
    """Checkpoints mixed from two, `/runs/<study>/<prefix>-w<alpha in hundredths>/checkpoint`: arms of the round."""

    sft: str
    """The checkpoint, `/runs/...`, of which the alphas are shares."""
    toward: str = ""
    """The other one, `/runs/...` or `owner/name@revision`; without it the base of `sft`."""
    alphas: str = DEFAULT_ALPHAS
    """Shares in whole hundredths, separated by commas."""
    prefix: str
    study: str
    base: str = ""
    revision: str = ""
    """Of `base`; both only where nothing is named `toward`."""
    blend_head: bool = False
    timeout: int = 10_800
    """Seconds."""


class Construction(Note):
    """How checkpoints that no study trains are made. The watcher has them made."""

    blend: Blend | None = None


class RoundSpec(SpecRecord):
    """A whole spec."""

    round: int
    registered: str
    archive: str | None = None
    """A git tag; its presence marks a recorded round, which is read out and never launched."""
    gpu: str | None = None
    app: str | None = None
    studies: dict[str, Study] = Field(default_factory=dict)
    reads: dict[str, Read]
    read_timeout: dict[str, int] | None = None
    locked_args: dict[str, list[str]] | None = None
    parents: dict[str, Parent]
    arms: dict[str, Arm]
    arm_reads: str = DEFAULT_ARM_READS
    transfer_read: str | None = None
    temperature: Pool | None = None
    drop_ids: list[str] = Field(default_factory=list)
    rule: Rule
    confirm: dict[str, Stage] = Field(default_factory=dict)
    budget: RoundBudget | None = None
    recovery: Recovery | None = None
    construction: Construction | None = None


def size_of(arm: str) -> str:
    """The size in an arm's name: `27b` of `27b-r16-lr1e5`."""
    return arm.partition("-")[0]
