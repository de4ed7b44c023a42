"""Which rounds a corrected journal has, and in which order: from 1 upward by 1, with none lost (rule 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kev.autorl.journal.findings import SUMMARY
from kev.autorl.journal.lines import ReadLine, RoundLine
from kev.autorl.journal.seals import Seal
from kev.autorl.journal.section import LABELS, Section, read_journal

MOST_ALIKE = 7
"""Fields of a section that have to be those of a sealed one for the two to be one round."""
MOST_PUT_IN = 20
"""Rounds that a gap may lack; a larger one is a number that was written wrong."""


@dataclass(frozen=True, slots=True)
class Place:
    """A round and the number that it gets."""

    number: int
    section: Section
    seal: Seal | None = None
    """What `append` wrote of the round of that number, where it is that one."""
    line: RoundLine | None = None
    is_new: bool = False
    """Whether nobody had written it."""


def places_of(text: str, seals: Mapping[int, Seal], lines: Sequence[ReadLine]) -> tuple[list[Place], list[str]]:
    """Every round in order, and what had to be changed for it."""
    changes: list[str] = []
    rounds = {each.round.iteration: each.round for each in reversed(lines) if each.round is not None}
    sections = _renumbered(_distinct(read_journal(text).sections, changes), seals, rounds, changes)
    written = [each.iteration for each in sections]
    known = _of_sections(sections, rounds)
    absent = (seals.keys() | known.keys()) - set(written)
    absent = {number for number in absent if 0 < number <= max([*written, *seals, len(written)]) + MOST_PUT_IN}
    if written != sorted(written):
        changes.append(f"{SUMMARY}: rounds put in order: {', '.join(map(str, written))}")
    found: list[Place] = []
    waiting = sorted([*sections, *map(_empty, absent)], key=lambda each: each.iteration)
    for section in waiting:
        due = len(found) + 1
        gap = range(due, section.iteration) if section.iteration - due <= MOST_PUT_IN else ()
        for number in gap:
            changes.append(f"{SUMMARY}: Iteration {number}: put in, for it was missing")
            found.append(Place(number, _empty(number), is_new=True))
        number = len(found) + 1
        is_new = section.iteration in absent
        seal = seals.get(section.iteration) if number == section.iteration else None
        if is_new:
            changes.append(f"{SUMMARY}: Iteration {number}: put in{', as it was written before' if seal else ''}")
        elif number != section.iteration:
            changes.append(f"{SUMMARY}:{section.line}: Iteration {section.iteration} -> Iteration {number}")
        found.append(Place(number, section, seal, known.get(section.iteration), is_new))
    return found, changes


def _distinct(sections: Sequence[Section], changes: list[str]) -> list[Section]:
    """The sections without those that say word for word what one of their number says already."""
    found: list[Section] = []
    for section in sections:
        same = [each for each in found if each.iteration == section.iteration and _words(each) == _words(section)]
        if same:
            where = f"{SUMMARY}:{section.line}: Iteration {section.iteration}"
            changes.append(f"{where}: left out, the same as line {same[0].line}")
        else:
            found.append(section)
    return found


def _renumbered(
    sections: Sequence[Section], seals: Mapping[int, Seal], lines: Mapping[int, RoundLine], changes: list[str]
) -> list[Section]:
    """The sections, with the number of the round that one certainly is where its own was changed."""
    found = list(sections)
    for number in sorted((seals.keys() | lines.keys()) - {each.iteration for each in sections}):
        at = next((at for at, each in enumerate(found) if _is_round(each, at + 1, number, seals, lines)), None)
        if at is not None:
            section = found[at]
            where = f"{SUMMARY}:{section.line}: Iteration {section.iteration}"
            changes.append(f"{where} -> Iteration {number}, as it was written")
            found[at] = replace(section, iteration=number)
    return found


def _is_round(
    section: Section, due: int, number: int, seals: Mapping[int, Seal], lines: Mapping[int, RoundLine]
) -> bool:
    """Whether a section is the round of another number than its own."""
    own = _alike(section, seals[section.iteration]) if section.iteration in seals else -1
    like = _alike(section, seals[number]) if number in seals else 0
    if like >= MOST_ALIKE and like > own:
        return True
    # Where the section's own number is out of place only, for the line's may be the wrong one.
    return section.iteration != due == number and number in lines and _is_of(section, lines[number])


def _alike(section: Section, seal: Seal) -> int:
    """Fields of a section that are those of a sealed one."""
    sealed = read_journal(seal.section).sections
    return sum(section.text(label) == sealed[0].text(label) for label in LABELS) if sealed else 0


def _of_sections(sections: Sequence[Section], lines: Mapping[int, RoundLine]) -> dict[int, RoundLine]:
    """The lines by the rounds that they belong to, whatever number they say."""
    found = {number: line for number, line in lines.items() if any(each.iteration == number for each in sections)}
    for number, line in lines.items():
        if number in found:
            continue
        owner = next((each for each in sections if each.iteration not in found and _is_of(each, line)), None)
        found[number if owner is None else owner.iteration] = line
    return found


def _is_of(section: Section, line: RoundLine) -> bool:
    """Whether a line has the figures of a section."""
    facts = section.score_facts
    score = None if facts is None else facts.score
    return (section.time, section.duration, score) == (line.timestamp, line.duration_s, line.score)


def _words(section: Section) -> tuple[object, ...]:
    fields = tuple((label, each.text) for label, each in section.fields.items())
    return section.time, section.duration, fields, section.loose


def _empty(number: int) -> Section:
    return Section(number, "", None, 0, True, 0)
