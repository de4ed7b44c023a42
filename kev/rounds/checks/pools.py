"""The temperature pool: when a round needs one, where its rows may be used, and that they are held out."""

from collections.abc import Iterator

from kev.document import JsonPath
from kev.errors import KevError, UsageError
from kev.records.spec import Panel, Pool
from kev.rounds.checks.arms import TRIAL
from kev.rounds.checks.criteria import criterion_paths
from kev.rounds.checks.reads import read_split, read_suite_path
from kev.rounds.checks.training import training_of_arm
from kev.rounds.criteria import UNKNOWABLE, parse_path
from kev.rounds.overlap import Overlap, find_overlap
from kev.rounds.pools import FIT_SPLITS, Corpus, PooledRead, Training, expand, pool_conflicts
from kev.rounds.problems import Severity
from kev.rounds.subject import Subject
from kev.spelling import nearest

POOL_REQUIRED_FROM = 21
"""The first round whose temperature-moved criteria need a registered pool."""

MAX_COMPARED_BYTES = 64 * 1024 * 1024
"""Partitions above this are compared by content only with --partitions: reading them takes minutes."""

POOL: JsonPath = ("temperature",)


def check_pools(subject: Subject) -> None:
    """Everything about the round's pool, or about its absence."""
    pool = subject.spec.temperature
    moved = list(_moved_panels(subject))
    if pool is None:
        if "temperature" not in subject.names():
            _check_absence(subject, moved)
        return
    _check_shape(subject, pool)
    _check_placement(subject, pool, moved)
    reads = list(_pooled_reads(subject, pool))
    trainings = _trainings(subject)
    for read in reads:
        place = (*POOL, "reads", pool.reads.index(read.name))
        if subject.checkout.suite(read.suite) is None:
            message = f"{read.suite} is not here, so that {read.name} cannot be compared with the training"
            subject.problems.archive("pool-unchecked", place, message)
            continue
        _check_held_out(subject, read, trainings, place)


# ---------------------------------------------------------------------------------------------- shape and place


def _check_shape(subject: Subject, pool: Pool) -> None:
    problems = subject.problems
    if not pool.reads:
        problems.add("missing-key", (*POOL, "reads"), "is empty: a pool needs rows")
    for index, tag in enumerate(pool.reads):
        subject.check_tag(tag, (*POOL, "reads", index))
        if tag in pool.reads[:index]:
            problems.add("repeated-read", (*POOL, "reads", index), f"{tag} is there already")
    for index, tag in enumerate(pool.exclude_reads or ()):
        subject.check_tag(tag, (*POOL, "exclude_reads", index), transfer=True)
    for tag, names in (pool.sources or {}).items():
        if tag not in pool.reads:
            problems.add(
                "unknown-read", (*POOL, "sources", tag), f"the pool does not read {tag}{nearest(tag, pool.reads)}"
            )
            continue
        read = subject.spec.reads.get(tag)
        suite = subject.checkout.suite(read.suite) if read is not None and read.suite else None
        listed = suite.manifest.listed_sources() if suite is not None else set()
        for index, name in enumerate(names):
            if listed and name not in listed:
                message = f"{read.suite if read else tag} lists no source {name}{nearest(name, listed)}"
                problems.add("unknown-source", (*POOL, "sources", tag, index), message)
    if pool.ci is not None:
        if not 0 < pool.ci.level < 1:
            problems.add("out-of-range", (*POOL, "ci", "level"), f"{pool.ci.level} is not between 0 and 1")
        if pool.ci.samples < 1:
            problems.add("out-of-range", (*POOL, "ci", "samples"), f"{pool.ci.samples} is no number of resamples")
        if pool.ci.seed < 0:
            problems.add("out-of-range", (*POOL, "ci", "seed"), f"{pool.ci.seed} is no seed: 0 or above")


def _moved_panels(subject: Subject) -> Iterator[tuple[JsonPath, Panel]]:
    """The panels read by a criterion whose value a temperature moves, with that criterion's place."""
    for place, stage in subject.stages():
        for name, criterion in stage.criteria.items():
            where = (*place, "criteria", name)
            for _, text in criterion_paths(criterion, where):
                panel = _moved_panel(text)
                if panel in stage.panels:
                    yield where, stage.panels[panel]


def _moved_panel(text: str) -> str:
    """The panel of a value that moves with the temperature, as every metric but accuracy does; "" for others."""
    try:
        path = parse_path(text)
    except UsageError:
        return ""
    is_share = path.panel == UNKNOWABLE and not path.metric
    return "" if is_share or path.metric in ("acc", "n") else path.panel


def _check_placement(subject: Subject, pool: Pool, moved: list[tuple[JsonPath, Panel]]) -> None:
    for where, panel in moved:
        shared = [tag for tag in pool.reads if tag in panel.reads]
        if shared:
            message = f"is moved by the temperature, and its panel holds the pooled {' and '.join(shared)}"
            subject.problems.add("pool-in-panel", where, message)


def _check_absence(subject: Subject, moved: list[tuple[JsonPath, Panel]]) -> None:
    if not moved:
        return
    where = moved[0][0]
    if subject.spec.round >= POOL_REQUIRED_FROM:
        message = f"is moved by the temperature; from round {POOL_REQUIRED_FROM} on that needs a temperature pool"
        subject.problems.add("no-pool", where, message)
        return
    for name, arm in subject.spec.arms.items():
        match = TRIAL.fullmatch(arm.trial or "")
        study = subject.spec.studies.get(match["study"]) if match is not None else None
        suite = subject.checkout.suite(study.suite) if study is not None else None
        if study is not None and suite is not None and suite.manifest.is_training_corpus():
            message = f"its temperature is fitted in distribution, on development rows of {study.suite}, with no pool"
            subject.problems.warn("in-distribution", ("arms", name), message)


# --------------------------------------------------------------------------------------------------- held out


def _pooled_reads(subject: Subject, pool: Pool) -> Iterator[PooledRead]:
    for index, tag in enumerate(pool.reads):
        read = subject.spec.reads.get(tag)
        if read is None:
            continue
        suite = read_suite_path(read)
        if suite is None:
            message = f"{tag} is no benchmark of a suite, and cannot be pooled"
            subject.problems.add("pool-unchecked", (*POOL, "reads", index), message)
            continue
        sources = (pool.sources or {}).get(tag)
        yield PooledRead(tag, suite, read_split(read), tuple(sources) if sources is not None else None)


def _trainings(subject: Subject) -> dict[Training, Corpus]:
    """What the arms were trained on, each kind once; what cannot be told is noted."""
    trainings: dict[Training, list[str]] = {}
    silent = []
    for name, arm in subject.spec.arms.items():
        training = training_of_arm(subject, arm)
        if training is not None:
            trainings.setdefault(training, []).append(name)
        elif arm.trial is None:
            silent.append(name)
        else:
            message = f"nothing tells what {arm.trial} was trained on; name it under trained_on"
            subject.problems.archive("unknown-training", ("arms", name), message)
    # Bare checkpoints are blends and snapshots of the other arms, as a rule; alone they must speak for themselves.
    for name in silent if not trainings else ():
        message = "nothing tells what this checkpoint was trained on; name it under trained_on"
        subject.problems.archive("unknown-training", ("arms", name), message)
    corpora = {training: expand(training, subject.checkout) for training in trainings}
    noted: set[str] = set()
    for training, corpus in corpora.items():
        for name in corpus.unlisted:
            if name not in noted:
                noted.add(name)
                message = f"{name}, which it was trained on, lists no sources that the pool could be compared with"
                subject.problems.archive("pool-unchecked", ("arms", trainings[training][0]), message)
    return corpora


def _check_held_out(subject: Subject, read: PooledRead, trainings: dict[Training, Corpus], place: JsonPath) -> None:
    conflicts: dict[str, None] = {}
    for corpus in trainings.values():
        conflicts |= dict.fromkeys(pool_conflicts(read, corpus, subject.checkout))
    for conflict in conflicts:
        subject.problems.add("pool-conflict", place, conflict)
    if not conflicts:
        _compare_contents(subject, read, trainings, place)


def _compare_contents(subject: Subject, read: PooledRead, trainings: dict[Training, Corpus], place: JsonPath) -> None:
    """Compare the texts of a pooled read with those of every file of training data that is here."""
    pooled_path = f"{read.suite}/{read.split}.jsonl"
    here = [path for path in _training_files(trainings) if path != pooled_path and subject.checkout.size(path)]
    if not here or not subject.checkout.size(pooled_path):
        return
    total = sum(subject.checkout.size(path) for path in [pooled_path, *here])
    if total > MAX_COMPARED_BYTES and not subject.partitions:
        message = f"{total / 2**20:,.0f} MiB of partitions were not compared text by text; --partitions does"
        subject.problems.warn("pool-not-compared", place, message)
        return
    try:
        pooled = subject.checkout.records(pooled_path)
        for path in here:
            overlap = find_overlap(pooled, subject.checkout.records(path), read.sources)
            if overlap is not None:
                _note_overlap(subject, read, path, overlap, place)
    except KevError as error:
        subject.problems.add("damaged-file", place, str(error))


def _training_files(trainings: dict[Training, Corpus]) -> list[str]:
    paths = [path for training in trainings for path in training.data]
    for corpus in trainings.values():
        paths += [f"{suite}/{split}.jsonl" for suite in sorted(corpus.suites) for split in ("train", *FIT_SPLITS)]
    return list(dict.fromkeys(paths))


def _note_overlap(subject: Subject, read: PooledRead, path: str, overlap: Overlap, place: JsonPath) -> None:
    mine, theirs = overlap.example
    message = (
        f"{overlap.shared} of {overlap.total} pooled records of {read.suite} have the text of a record in {path}, "
        f"whatever they are called: {mine} is {theirs} there"
    )
    severity = Severity.WARNING if overlap.is_few else Severity.PROBLEM
    subject.problems.add("pool-overlap", place, message, severity)
