"""A suite's `manifest.json`: its partitions with their hashes, which sources may be trained on, and its limits.

Manifests of several ages and makers are read: `version` and `seed` are numbers or strings, `sources` is a list or a
table, a generated corpus has one hash and no table of files.
"""

from typing import Any

from pydantic import Field

from kev.records.base import Record

SPLITS = ("train", "calibration", "development", "test")


class PartitionEntry(Record):
    """One file of a suite as it was frozen."""

    sha256: str
    records: int | None = None
    questions: int | None = None
    bytes: int | None = None


class Context(Record):
    """The context limits of a suite, in tokens."""

    max_state: int | None = None
    max_branch: int | None = None
    max_packed: int | None = None
    truncate: bool | None = None


class Mirror(Record):
    """The private dataset that holds the partitions."""

    dataset: str
    revision: str


class Manifest(Record):
    """A suite's manifest."""

    version: int | str | None = None
    files: dict[str, PartitionEntry] = Field(default_factory=dict)
    trainable_sources: list[str] | None = None
    eval_only_sources: list[str] | None = None
    holdout_sources: list[str] | None = None
    sources: list[str] | dict[str, Any] | None = None
    base_revisions: dict[str, str] = Field(default_factory=dict)
    context: Context | None = None
    eval_only: bool = False
    seed: int | str | None = None
    mirror: Mirror | None = None
    inputs: Any = None
    sha256: str | None = None
    records: int | None = None

    def listed_sources(self) -> set[str]:
        """Every source the manifest names, whatever it may be used for."""
        names = set(self.trainable_sources or ()) | set(self.eval_only_sources or ()) | set(self.holdout_sources or ())
        return names | set(self.sources or ())

    def training_sources(self) -> set[str]:
        """What training on the suite trains on: the sources declared trainable, or every listed one without that."""
        if self.trainable_sources is not None:
            return set(self.trainable_sources)
        if isinstance(self.sources, dict):
            marked = {
                name for name, entry in self.sources.items() if isinstance(entry, dict) and entry.get("trainable")
            }
            if marked:
                return marked
        return self.listed_sources()

    def is_training_corpus(self) -> bool:
        """Whether the suite declares anything trainable."""
        if isinstance(self.sources, dict):
            table = self.sources.values()
            return bool(self.trainable_sources) or any(isinstance(e, dict) and e.get("trainable") for e in table)
        return bool(self.trainable_sources)

    def components(self) -> list[str]:
        """The names of what the corpus was assembled from."""
        inner = self.inputs.get("components") if isinstance(self.inputs, dict) else None
        return list(inner) if isinstance(inner, dict) else []
