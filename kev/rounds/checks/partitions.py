"""The partitions themselves, with --partitions: each as its manifest froze it, or a word on how to get it."""

from kev.document import JsonPath
from kev.errors import KevError, NotFound
from kev.rounds.checks.reads import read_split
from kev.rounds.subject import Subject
from kev.suite import find_removed


def check_partitions(subject: Subject) -> None:
    """Every partition that the studies train and screen on, and that the reads score."""
    wanted: dict[tuple[str, str], JsonPath] = {}
    for name, study in subject.spec.studies.items():
        for split in ("train", "calibration", "development"):
            wanted.setdefault((study.suite, split), ("studies", name, "suite"))
        wanted.setdefault((study.transfer, "development"), ("studies", name, "transfer"))
    for tag, read in subject.spec.reads.items():
        if read.suite is not None and not read.suite.endswith(".jsonl"):
            wanted.setdefault((read.suite, read_split(read)), ("reads", tag, "suite"))
        if read.decision is not None:
            wanted.setdefault((read.decision, "test"), ("reads", tag, "decision"))
    for (path, split), where in wanted.items():
        suite = subject.checkout.suite(path)
        if suite is None or find_removed(path) is not None:
            continue
        try:
            suite.read_partition(split, allow_test=True)
        except NotFound as error:
            subject.problems.archive("missing-partition", where, str(error))
        except KevError as error:
            subject.problems.add("damaged-partition", where, str(error))
