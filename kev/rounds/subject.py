"""What the checks of a spec look at: its parts that could be read, its names, and the files around it."""

from dataclasses import dataclass

from kev.document import Document, JsonPath
from kev.errors import DamagedFile, NotFound
from kev.records.spec import RoundSpec, Rule, Stage
from kev.rounds.checkout import Checkout
from kev.rounds.problems import Problems
from kev.rounds.sides import TRANSFER, transfer_read
from kev.spelling import nearest
from kev.suite import Suite

RULE: JsonPath = ("rule",)


@dataclass
class Subject:
    """A spec under validation. `spec` lacks the parts that could not be read; their names still count as there."""

    document: Document
    spec: RoundSpec
    dropped: frozenset[JsonPath]
    checkout: Checkout
    problems: Problems
    partitions: bool = False
    """Whether partitions are read too, however large."""

    def names(self, *where: str) -> list[str]:
        """The keys of the object at `where` in the text, readable or not."""
        value = self.document.value
        for part in where:
            value = value.get(part) if isinstance(value, dict) else None
        return list(value) if isinstance(value, dict) else []

    def stages(self) -> list[tuple[JsonPath, Rule | Stage]]:
        """The rule and every confirmation stage, with their places."""
        stages: list[tuple[JsonPath, Rule | Stage]] = [(RULE, self.spec.rule)]
        return stages + [(("confirm", name), stage) for name, stage in self.spec.confirm.items()]

    def transfer_suites(self) -> set[str] | None:
        """The suites whose rows `transfer` stands for, over all arms; None when that of some arm is not known."""
        suites = set()
        for arm in self.spec.arms.values():
            tag = transfer_read(self.spec, arm)
            if tag is not None:
                read = self.spec.reads.get(tag)
                suite = read.suite if read is not None else None
            else:
                study = self.spec.studies.get((arm.trial or "").removeprefix("runs/").partition("/")[0])
                suite = study.transfer if study is not None else None
            if suite is None:
                return None
            suites.add(suite)
        return suites

    def check_tag(self, tag: str, where: JsonPath, *, transfer: bool = False) -> bool:
        """Whether `tag` is a read of the spec that could be read; a tag that the spec lacks is a problem."""
        known = self.names("reads")
        if transfer and tag == TRANSFER:
            return True
        if tag not in known:
            self.problems.add("unknown-read", where, f"there is no read {tag!r}{nearest(tag, known)}")
        return tag in self.spec.reads

    def check_suite(self, path: str, where: JsonPath, need: str) -> Suite | None:
        """The suite in `path`; its absence or damage is noted."""
        suite = self.checkout.suite(path)
        error = self.checkout.suite_error(path)
        if isinstance(error, NotFound):
            self.problems.missing(f"{path.rstrip('/')}/manifest.json", where, need)
        elif isinstance(error, DamagedFile):
            self.problems.add("damaged-file", where, f"{path}/manifest.json: {error.reason}")
        return suite
