"""What the checks of a spec look at: its parts that could be read, its names, and the files around it."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, KevError, NotFound
from kev.records.spec import RoundSpec, Rule, Stage
from kev.rounds.document import Document, JsonPath
from kev.rounds.problems import Problems
from kev.suite import Suite, read_suite

RULE: JsonPath = ("rule",)


@dataclass
class Checkout:
    """The files under a root, each read once."""

    root: Path
    _suites: dict[str, Suite | KevError] = field(default_factory=dict)
    _plans: dict[str, Any] = field(default_factory=dict)

    def suite(self, path: str) -> Suite | None:
        """The suite in `path`; None when it is not there or cannot be read."""
        found = self._open(path)
        return found if isinstance(found, Suite) else None

    def suite_error(self, path: str) -> KevError | None:
        """Why there is no suite in `path`."""
        found = self._open(path)
        return None if isinstance(found, Suite) else found

    def plan(self, path: str) -> Any:
        """The JSON of a plan. Raises NotFound or DamagedFile."""
        if path not in self._plans:
            try:
                self._plans[path] = files.read_json(self.root / path)
            except KevError as error:
                self._plans[path] = error
        if isinstance(self._plans[path], KevError):
            raise self._plans[path]
        return self._plans[path]

    def has(self, path: str) -> bool:
        """Whether anything is at `path`; a path that no file can have is nothing."""
        try:
            return (self.root / path).exists()
        except (OSError, ValueError):
            return False

    def _open(self, path: str) -> Suite | KevError:
        if path not in self._suites:
            try:
                self._suites[path] = read_suite(self.root / path)
            except KevError as error:
                self._suites[path] = error
            except (OSError, ValueError):
                self._suites[path] = NotFound(f"{path}: no file can have that name")
        return self._suites[path]


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

    def check_tag(self, tag: str, where: JsonPath, *, transfer: bool = False) -> bool:
        """Whether `tag` is a read of the spec that could be read; a tag that the spec lacks is a problem."""
        known = self.names("reads")
        if transfer and tag == "transfer":
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


def nearest(name: str, known: Collection[str]) -> str:
    """The end of a message about an unknown name: the known one it is most like, or the known ones."""
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.casefold(), folded, 1, 0.5)
    if close:
        return f"; did you mean {folded[close[0]]}?"
    if not known:
        return ""
    return f"; there is {', '.join(sorted(known)[:12])}" + (", …" if len(known) > 12 else "")
