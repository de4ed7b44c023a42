"""Which records a configuration trains on, and the refusal of those it may not."""

from collections.abc import Collection
from pathlib import Path

from pydantic import ValidationError

from kev import files
from kev.data.draw import Draw
from kev.data.record import DataRecord, check_record
from kev.errors import DamagedLine, NotFound, Refused
from kev.records.base import reason_of
from kev.records.plan import TrialConfig
from kev.suite import MAX_PARTITION_BYTES, Suite


def training_records(config: TrialConfig, suite: Suite, root: Path) -> list[DataRecord]:
    """The suite's train partition, or the plan's `data` with `replay` records of that partition behind it.

    Raises Refused for records of sources that may not be trained on, NotFound or DamagedFile for the files.
    """
    if config.synthetic_repeat != 1 or config.public_frac != 1:
        raise Refused("synthetic_repeat and public_frac need a manifest that tells public sources from synthetic ones; "
                      "no suite here has one")  # fmt: skip
    partition = _partition(suite) if config.data is None or config.replay else []
    if config.data is None:
        records = partition
    else:
        records = _of_file(root / config.data)
        if config.replay:
            order = Draw(config.seed, "replay").shuffled(partition)
            records += order[: config.replay]
    _check_sources(records, suite, own=config.data is None)
    if config.train_sources is not None:
        wanted = set(config.train_sources.split(","))
        records = [record for record in records if record.meta.source in wanted]
        if not records:
            raise Refused(f"train_sources {config.train_sources}: no record to train on is from any of them")
    return records


def _partition(suite: Suite) -> list[DataRecord]:
    path = suite.partition_path("train")
    return [_record(path, number, value) for number, value in enumerate(suite.read_partition("train"), start=1)]


def _of_file(path: Path) -> list[DataRecord]:
    """A file of records under evals/: the partition of a suite, compared with its manifest where it has one."""
    try:
        data = files.read_bytes(path, limit=MAX_PARTITION_BYTES)
    except NotFound:
        raise NotFound(f"{path}: no such file; a plan's data lies under evals/ of the checkout") from None
    records = []
    for line in files.parse_json_lines(data):
        if line.damage is not None:
            raise DamagedLine(path, line.number, line.damage)
        records.append(_record(path, line.number, line.value))
    return records


def _record(path: Path, number: int, value: object) -> DataRecord:
    try:
        record = DataRecord.model_validate(value)
        check_record(record)
    except ValidationError as error:
        raise DamagedLine(path, number, reason_of(error)) from None
    except ValueError as error:
        raise DamagedLine(path, number, str(error)) from None
    return record


def _check_sources(records: Collection[DataRecord], suite: Suite, *, own: bool) -> None:
    manifest = suite.manifest
    forbidden = set(manifest.eval_only_sources or ()) | set(manifest.holdout_sources or ())
    allowed = set(manifest.trainable_sources) if manifest.trainable_sources is not None and own else None
    for source in dict.fromkeys(record.meta.source for record in records):
        if source in forbidden:
            raise Refused(f"source {source}: {suite.directory} keeps it for evaluation; it may not be trained on")
        if allowed is not None and source not in allowed:
            raise Refused(f"source {source}: not declared trainable by {suite.directory}")
