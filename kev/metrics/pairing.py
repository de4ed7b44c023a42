"""Two checkpoints on the same questions, and the clusters that resampling draws whole."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kev.errors import BadRows
from kev.metrics.rows import Integers, Rows, scored


@dataclass(frozen=True)
class Clusters:
    """Rows that stand or fall together: those of one (source, group).

    `of_row` is the cluster of every row; clusters are numbered source by source, and `per_source` says how many
    each source has. Both sources and groups count in the order in which rows first name them.
    """

    of_row: Integers
    per_source: tuple[int, ...]

    @property
    def count(self) -> int:
        return sum(self.per_source)


@dataclass(frozen=True)
class Pairing:
    """Both sides' scored rows in one order, sorted by (record, question), with their clusters."""

    candidate: Rows
    parent: Rows
    clusters: Clusters


class Aligner:
    """A parent's scored rows sorted by (record, question), and candidates brought into that order.

    Raises BadRows if a question of the parent occurs twice.
    """

    def __init__(self, parent: Rows) -> None:
        self._given = scored(parent)
        self._order = _sorted_order(self._given)
        self.rows = self._given.take(self._order)

    def align(self, candidate: Rows) -> Rows:
        """The scored rows of `candidate`, question by question those of `rows`.

        Raises BadRows, naming the first question at fault, if one occurs twice or on one side only, or if the sides
        disagree about its options, label, source, group, task or type.
        """
        candidate = scored(candidate)
        # Reads of one suite come in one order, and sorting is what a comparison would otherwise spend its time on.
        order = self._order if _same_questions(candidate, self._given) else _sorted_order(candidate)
        candidate = candidate.take(order)
        if not len(candidate) and not len(self.rows):
            raise BadRows("no scored rows are left to compare; check the sources, tasks and ids that the panel keeps")
        _check_same_questions(candidate, self.rows)
        for name in ("keys", "labels", "sources", "groups", "tasks", "types"):
            _check_same(name, candidate, self.rows)
        return candidate


def pair(candidate: Rows, parent: Rows) -> Pairing:
    """The scored rows of both sides, question by question. Raises BadRows as `Aligner` and `Aligner.align`."""
    aligner = Aligner(parent)
    return Pairing(aligner.align(candidate), aligner.rows, cluster(aligner.rows))


def cluster(rows: Rows) -> Clusters:
    """The (source, group) clusters of `rows`, in the order of `rows`."""
    codes: dict[tuple[str, str], int] = {}
    code = [codes.setdefault(key, len(codes)) for key in zip(rows.sources, rows.groups, strict=True)]
    per_source: dict[str, int] = {}
    within = []
    for source, _ in codes:
        within.append(per_source.setdefault(source, 0))
        per_source[source] += 1
    first = dict(zip(per_source, np.cumsum((0, *per_source.values())).tolist(), strict=False))
    number = [first[source] + place for (source, _), place in zip(codes, within, strict=True)]
    of_row = np.array(number, dtype=np.intp)[np.array(code, dtype=np.intp)]
    return Clusters(of_row, tuple(per_source.values()))


def _sorted_order(rows: Rows) -> Integers:
    keys = list(zip(rows.ids, rows.questions, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for before, after in pairwise(order):
        if keys[before] == keys[after]:
            raise BadRows(f"{rows.where(after)}: occurs twice; drop the record by its id, or keep one of them")
    return np.array(order, dtype=np.intp)


def _same_questions(ours: Rows, theirs: Rows) -> bool:
    return len(ours) == len(theirs) and bool(
        (ours.ids == theirs.ids).all() and (ours.questions == theirs.questions).all()
    )


def _check_same_questions(candidate: Rows, parent: Rows) -> None:
    if _same_questions(candidate, parent):
        return
    ours = set(zip(candidate.ids, candidate.questions, strict=True))
    theirs = set(zip(parent.ids, parent.questions, strict=True))
    for rows, other, side in ((candidate, theirs, "parent"), (parent, ours, "candidate")):
        alone = [key not in other for key in zip(rows.ids, rows.questions, strict=True)]
        if any(alone):
            raise BadRows(f"{rows.where(alone.index(True))}: the {side} has no such row (one of {sum(alone)})")


def _check_same(name: str, candidate: Rows, parent: Rows) -> None:
    ours, theirs = getattr(candidate, name), getattr(parent, name)
    differ = np.flatnonzero(ours != theirs)
    if len(differ):
        row = int(differ[0])
        field = {"labels": "label", "keys": "options"}.get(name, name.removesuffix("s"))
        raise BadRows(
            f"{candidate.where(row)}: {field} {_shown(ours[row])} here, {_shown(theirs[row])} in {parent.origins[row]}"
        )


def _shown(value: object) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)
