"""The files of a checkout that a spec names, each read once."""

import posixpath
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kev import files
from kev.document import read_value
from kev.errors import KevError, NotFound
from kev.records.suite import SPLITS
from kev.suite import Suite, read_suite


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
                self._plans[path] = read_value(self.root / path)
            except KevError as error:
                self._plans[path] = error
            except (OSError, ValueError):
                self._plans[path] = NotFound(f"{path}: no file can have that name")
        if isinstance(self._plans[path], KevError):
            raise self._plans[path]
        return self._plans[path]

    def has(self, path: str) -> bool:
        """Whether anything is at `path`; a path that no file can have is nothing."""
        try:
            return (self.root / path).exists()
        except (OSError, ValueError):
            return False

    def size(self, path: str) -> int:
        """The bytes of the file at `path`; 0 when there is none."""
        try:
            return (self.root / path).stat().st_size
        except (OSError, ValueError):
            return 0

    def records(self, path: str) -> list[Any]:
        """The records of a partition, test splits included, compared with its manifest if that names it.

        Raises NotFound, DamagedFile or DamagedLine.
        """
        directory, name = posixpath.split(path)
        suite = self.suite(directory)
        if suite is not None and name in suite.manifest.files and name.removesuffix(".jsonl") in SPLITS:
            return suite.read_partition(name.removesuffix(".jsonl"), allow_test=True)
        return [record for record in files.read_json_lines(self.root / path) if isinstance(record, dict)]

    def _open(self, path: str) -> Suite | KevError:
        if path not in self._suites:
            try:
                self._suites[path] = read_suite(self.root / path)
            except KevError as error:
                self._suites[path] = error
            except (OSError, ValueError):
                self._suites[path] = NotFound(f"{path}: no file can have that name")
        return self._suites[path]

    @cached_property
    def suite_paths(self) -> list[str]:
        """Every directory under evals/ that has a manifest, relative to the root."""
        found = sorted((self.root / "evals").rglob("manifest.json"))
        return [path.parent.relative_to(self.root).as_posix() for path in found]

    def suites_named(self, name: str) -> list[str]:
        """The suites whose directory has that name, wherever they lie under evals/."""
        return [path for path in self.suite_paths if posixpath.basename(path) == name]

    def suite_with_hash(self, sha256: str) -> str | None:
        """The suite whose manifest has that hash."""
        for path in self.suite_paths:
            suite = self.suite(path)
            if suite is not None and suite.sha256 == sha256:
                return path
        return None
