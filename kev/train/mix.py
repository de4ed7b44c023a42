"""Which records a trial is trained on: the partition of its suite, a file of its own, or both, as its plan says."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kev import files
from kev.data.draw import Draw
from kev.data.record import DataRecord
from kev.errors import NotFound, Refused
from kev.procedure.corpora import check_corpus
from kev.records.base import parse_record
from kev.records.plan import TrialConfig
from kev.suite import Suite, read_suite


def trial_records(config: TrialConfig, suite: Suite, root: Path) -> list[DataRecord]:
    """The training records of `config`: the suite's, or those of `data` (under `root`) and `replay` of the suite's.

    `train_sources` names the sources that are kept; `public_frac` is the share kept of the records that no rule
    generated, and `synthetic_repeat` how often each generated one comes, every copy with an id of its own.
    Raises Refused for a source that the suite does not let be trained on, and what reading the files raises.
    """
    check_corpus(root, suite.directory, suite.manifest)
    own = partition_records(suite, "train")
    if config.data is not None:
        _check_own_corpus(root, config.data)
        records = _read(root / config.data)
        if config.replay:
            records += _replayed(own, config)
    else:
        records = own
    _refuse_sources(records, suite, config)
    if config.train_sources is not None:
        wanted = set(config.train_sources.split(","))
        records = [record for record in records if record.meta.source in wanted]
    return list(_mixed(records, config))


def _check_own_corpus(root: Path, data: str) -> None:
    try:
        corpus = read_suite((root / data).parent)
    except NotFound:
        return  # a file without a manifest says nothing of itself
    check_corpus(root, corpus.directory, corpus.manifest)


def is_generated(record: DataRecord) -> bool:
    """Whether a rule generated the record: it has a sibling, a structure, or the facts that its label follows from."""
    extra = record.meta.model_extra or {}
    return record.meta.pair_id is not None or "structure" in extra or "facts" in extra


def partition_records(suite: Suite, partition: str) -> list[DataRecord]:
    """The records of a partition that may be read freely. Raises what reading it raises."""
    path = suite.partition_path(partition)
    return [parse_record(path, value, DataRecord) for value in suite.read_partition(partition)]


def _read(path: Path) -> list[DataRecord]:
    return [parse_record(path, value, DataRecord) for value in files.read_json_lines(path)]


def _replayed(own: list[DataRecord], config: TrialConfig) -> list[DataRecord]:
    count = config.replay or 0
    if count > len(own):
        raise Refused(f"replay asks for {count:,} records, and the suite's train partition has {len(own):,}")
    return Draw(config.seed, "replay").sample(own, count)


def _refuse_sources(records: Sequence[DataRecord], suite: Suite, config: TrialConfig) -> None:
    trainable = suite.manifest.trainable_sources
    forbidden = set(suite.manifest.eval_only_sources or ()) | set(suite.manifest.holdout_sources or ())
    for record in records:
        source = record.meta.source
        # A file of one's own may have sources that the suite has never heard of; what it forbids stays forbidden.
        declared = trainable is None or config.data is not None or source in trainable
        if source in forbidden or not declared:
            raise Refused(f"record {record.meta.id}: {suite.directory} does not let {source} be trained on")


def _mixed(records: Sequence[DataRecord], config: TrialConfig) -> Iterator[DataRecord]:
    draw = Draw(config.seed, "public_frac")
    for record in records:
        if not is_generated(record):
            if config.public_frac == 1 or draw.chance(config.public_frac):
                yield record
            continue
        yield record
        for copy in range(2, config.synthetic_repeat + 1):
            yield record.model_copy(update={"meta": record.meta.model_copy(update={"id": f"{record.meta.id}#{copy}"})})
