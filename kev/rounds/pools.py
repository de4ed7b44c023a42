"""Whether a temperature pool is held out: its reads must share neither a suite nor a source with any training.

Names are compared here; `overlap` compares the texts themselves, which catches the same data under another name.
"""

import posixpath
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kev.records.suite import Manifest
from kev.rounds.checkout import Checkout

FIT_SPLITS = ("calibration", "development")
"""Splits of a training corpus that are in distribution, though nothing is trained on them."""


@dataclass(frozen=True, slots=True)
class Training:
    """What a checkpoint was trained on: suite directories, and files of records beside them."""

    suites: tuple[str, ...]
    data: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Training with everything it was assembled from."""

    suites: frozenset[str]
    sources: frozenset[str]
    unlisted: tuple[str, ...]
    """Suites, components and files whose sources nobody can tell."""


@dataclass(frozen=True, slots=True)
class PooledRead:
    """One read of a pool."""

    name: str
    suite: str
    split: str
    sources: tuple[str, ...] | None = None
    """The sources it keeps; None for all."""

    def sources_of(self, manifest: Manifest) -> set[str]:
        """The sources whose rows are pooled."""
        return set(self.sources) if self.sources is not None else manifest.listed_sources()


def expand(training: Training, checkout: Checkout) -> Corpus:
    """`training` followed through every component of its suites, breadth first."""
    suites: set[str] = set()
    sources: set[str] = set()
    unlisted: list[str] = []
    queue = deque(_normal(path) for path in training.suites)
    for path in training.data:
        if _normal(path).startswith("evals/"):
            queue.append(posixpath.dirname(_normal(path)))
        else:
            unlisted.append(path)
    while queue:
        path = queue.popleft()
        if path in suites:
            continue
        suites.add(path)
        suite = checkout.suite(path)
        own = suite.manifest.training_sources() if suite is not None else set()
        sources |= own
        if not own:
            unlisted.append(path)
        for component in suite.manifest.components() if suite is not None else ():
            found = checkout.suites_named(component.removesuffix("-train").removesuffix("-extra"))
            queue.extend(found)
            if not found:
                unlisted.append(component)
    return Corpus(frozenset(suites), frozenset(sources), tuple(dict.fromkeys(unlisted)))


def pool_conflicts(read: PooledRead, corpus: Corpus, checkout: Checkout) -> list[str]:
    """Why `read` may not fit the temperature of something trained on `corpus`; [] when by name nothing forbids it."""
    suite = checkout.suite(read.suite)
    if suite is None:
        return [f"{read.suite} has no manifest that could be compared with the training"]
    conflicts = []
    if _normal(read.suite) in corpus.suites or _same_manifest(suite.sha256, corpus.suites, checkout):
        conflicts.append(f"{read.suite} was trained on")
    pooled = read.sources_of(suite.manifest)
    shared = sorted(pooled & corpus.sources)
    if not pooled:
        conflicts.append(f"{read.suite} lists no sources, so that nothing can be compared")
    elif shared:
        conflicts.append(f"sources of {read.suite} were trained on: {_some(shared)}")
    if read.split in FIT_SPLITS and suite.manifest.is_training_corpus():
        conflicts.append(f"the {read.split} split of {read.suite} is in distribution: the suite is a training corpus")
    return conflicts


def _same_manifest(sha256: str, suites: frozenset[str], checkout: Checkout) -> bool:
    opened = [checkout.suite(path) for path in suites]
    return any(suite.sha256 == sha256 for suite in opened if suite is not None)


def _normal(path: str) -> str:
    return posixpath.normpath(path)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
