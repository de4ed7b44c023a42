"""Which submission a round tells of, and which were there when it was written.

A journal names no submissions, so a round is found by its score: the first of that score behind the round before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kev.autorl.journal.facts import Facts
from kev.autorl.journal.section import Section, Stated
from kev.autorl.scores import Scores, best_of
from kev.records.autorl import ScoreEntry

SLACK = 2.0
"""Seconds by which a whole-second duration and a submission's own time may differ."""


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """What the machine knows of a round."""

    entry: ScoreEntry | None
    """The submission of the score that it states."""
    later: ScoreEntry | None
    """One of that score which came only after the round, where there is no other."""
    own: tuple[ScoreEntry, ...]
    """Submissions since the round before, up to the one of its score."""
    covered: tuple[ScoreEntry, ...]
    """Submissions up to the last one that a round so far tells of: those that were certainly there."""
    present: tuple[ScoreEntry, ...]
    """Submissions that may have been there, by the times that the round states."""

    def best_values(self) -> set[float]:
        """What may have been the best score then."""
        low, high = best_of(self.covered), best_of(self.present)
        if high is None or high.score is None:
            return set()
        floor = high.score if low is None or low.score is None else low.score
        return {each.score for each in self.present if each.is_valid and each.score is not None and each.score >= floor}


@dataclass(frozen=True, slots=True)
class Round:
    """A section among the others, and what the machine has: what a check looks at."""

    place: int
    sections: Sequence[Section]
    known: Sequence[RoundFacts] | None
    """Of each section, where there are scores."""
    facts: Facts
    sealed: bool
    """Whether `append` wrote it."""

    @property
    def section(self) -> Section:
        return self.sections[self.place]

    @property
    def before(self) -> Sequence[Section]:
        return self.sections[: self.place]

    @property
    def machine(self) -> RoundFacts | None:
        return None if self.known is None else self.known[self.place]

    @property
    def is_last(self) -> bool:
        return self.place == len(self.sections) - 1


def agrees(stated: float, machine: float) -> bool:
    """Whether a stated figure is the machine's, rounded to no less than a decimal."""
    decimals = stated.decimals if isinstance(stated, Stated) else Stated.of(repr(stated)).decimals
    return abs(stated - machine) <= 0.5 * 10.0 ** -max(1, decimals) + 1e-9


def match_rounds(sections: Sequence[Section], scores: Scores) -> list[RoundFacts]:
    """The facts of each section, in their order."""
    found: list[RoundFacts] = []
    last = 0
    for section in sections:
        facts = section.score_facts
        stated = None if facts is None else facts.score
        same = [each for each in scores.valid if stated is not None and agrees(stated, each.score or 0.0)]
        there = [each for each in same if was_there(each, section)]
        behind = [each for each in there if each.submission_id > last]
        entry = behind[0] if behind else there[-1] if there else None
        first, last = last, max(last, entry.submission_id if entry is not None else 0)
        found.append(
            RoundFacts(
                entry,
                same[0] if same and entry is None else None,
                tuple(each for each in scores.entries if first < each.submission_id <= last),
                tuple(each for each in scores.entries if each.submission_id <= last),
                tuple(each for each in scores.entries if was_there(each, section) or each.submission_id <= last),
            )
        )
    return found


def was_there(entry: ScoreEntry, section: Section) -> bool:
    """Whether a submission may be older than a section: unless both of its times say otherwise."""
    if entry.elapsed_seconds is None or section.duration is None:
        return True
    if entry.elapsed_seconds <= section.duration + SLACK:
        return True
    # Some agents state how long the round itself took; then the local time has to say it.
    local = (entry.timestamp or "9")[:16].replace("T", " ")
    return local <= section.time
