"""A corrected journal: the machine's figures put right, everything that is missing put in, no prose lost.

Prose that has no field of its own goes behind the title, as quoted lines that name where it stood.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kev import files
from kev.autorl.journal.check_form import decode
from kev.autorl.journal.check_prose import failure_type_in
from kev.autorl.journal.compose import score_text
from kev.autorl.journal.corrected_fields import Correction
from kev.autorl.journal.corrected_order import Place, places_of
from kev.autorl.journal.facts import Facts
from kev.autorl.journal.failures import FAILURE_TYPES
from kev.autorl.journal.findings import LINES, SUMMARY, Language
from kev.autorl.journal.lines import KEYS, ReadLine, RoundLine, read_lines
from kev.autorl.journal.rounds import Round, match_rounds
from kev.autorl.journal.seals import Seal
from kev.autorl.journal.section import LABELS, SCORE, TITLE, Section, compose_section, note, read_journal
from kev.autorl.journal.written import Written
from kev.autorl.scores import Scores, best_of
from kev.text import shorten, visible

MOST_PASSES = 4


@dataclass(frozen=True, slots=True)
class Corrected:
    """A journal put right, and a line for each change."""

    written: Written
    changes: list[str]


def correct_journal(written: Written, facts: Facts, language: Language = "en") -> Corrected:
    """`written` with every breach put right that can be. What is right already stays."""
    changes: list[str] = []
    found = written
    for _ in range(MOST_PASSES):  # a figure that is put right may tell of another
        done = _correct(Written(found.summary, found.lines, written.seals), facts, language)
        changes += [each for each in done.changes if each not in changes]
        if (done.written.summary, done.written.lines) == (found.summary, found.lines):
            break
        found = done.written
    return Corrected(done.written, changes)


def _correct(written: Written, facts: Facts, language: Language) -> Corrected:
    text, damage = decode(written.summary or b"", SUMMARY)
    lines = read_lines(decode(written.lines or b"", LINES)[0].encode())
    changes = [f"{each.file}: {each.stated} put right" for each in damage]
    seals = {seal.iteration: seal for seal in written.seals}
    places, said = places_of(text, seals, lines)
    changes += said
    notes: list[str] = []
    sections = _sections(places, facts, language, notes)
    sections = _with_best(sections, places, facts)
    changes += _changes(places, sections)
    notes += _prose_of_lines(lines, text)
    summary = _preamble(text, notes, changes) + "".join(f"\n{section}" for section in sections)
    journal = read_journal(summary)
    made = [_line(place, section, lines) for place, section in zip(places, journal.sections, strict=True)]
    jsonl = "".join(files.dump_json_line(line.to_json()).decode() for line in made)
    changes += _line_changes(lines, made)
    again = _seals(places, sections, made, journal.sections, facts)
    return Corrected(Written(summary.encode(), jsonl.encode(), again), [visible(each) for each in changes])


def _sections(places: Sequence[Place], facts: Facts, language: Language, notes: list[str]) -> list[str]:
    """The text of each section, its best left as it was."""
    originals = [place.section for place in places]
    known = None if facts.scores is None else match_rounds(originals, facts.scores)
    taken = {each.entry.submission_id for each in known or () if each.entry is not None}
    found: list[str] = []
    before: list[Section] = []
    for at, place in enumerate(places):
        if place.seal is not None:
            text = place.seal.section.strip("\n") + "\n"
            notes += _displaced(place, text)
        else:
            correction = Correction(place, Round(at, originals, known, facts, False), before, taken, language)
            text = compose_section(place.number, correction.time, correction.duration, correction.fields())
            notes += correction.notes
        found.append(text)
        before.append(read_journal(text).sections[0])
    return found


def _with_best(texts: Sequence[str], places: Sequence[Place], facts: Facts) -> list[str]:
    """The sections with the best of the rounds so far, where they do not come from a seal."""
    sections = [read_journal(text).sections[0] for text in texts]
    known = match_rounds(sections, facts.scores) if facts.scores is not None else None
    holders: dict[float, int] = {}
    found = []
    for at, (text, section, place) in enumerate(zip(texts, sections, places, strict=True)):
        stated = section.score_facts
        own = [each.score for each in known[at].own if each.is_valid] if known else []
        for score in [*own, *([] if stated is None else [stated.score])]:
            if score is not None:
                holders.setdefault(float(score), section.iteration)
        top = best_of(known[at].covered) if known else None
        best = max(holders, default=None) if known is None else None if top is None else top.score
        if place.seal is None and stated is not None:
            wanted = score_text(stated.score, stated.improvement, best, None if best is None else holders[best])
            fields = {label: section.text(label) for label in LABELS} | {SCORE: wanted}
            text = compose_section(section.iteration, section.time, int(section.duration or 0), _spaced(fields))
        found.append(text)
    return found


def _spaced(fields: dict[str, str]) -> dict[str, str]:
    """Code begins on a line of its own."""
    return {label: f"\n{text}" if text.startswith("```") else text for label, text in fields.items()}


def _displaced(place: Place, sealed: str) -> list[str]:
    """What stood in a section beside what `append` had written there."""
    notes = []
    original = read_journal(sealed).sections[0]
    for label, found in place.section.fields.items():
        if found.text and found.text not in original.text(label):
            notes.append(note(place.section.iteration, label, found.text))
    return notes + [note(place.section.iteration, "", text) for text in place.section.loose]


def _preamble(text: str, notes: Sequence[str], changes: list[str]) -> str:
    """The title, and what stood between it and the first round."""
    journal = read_journal(text)
    head = text[: journal.sections[0].start] if journal.sections else text
    head = "\n".join(_harmless(line) for line in head.strip("\n \t").split("\n")).strip()
    if not head.startswith(TITLE):
        head = "\n".join(line for line in head.split("\n") if line.strip() != TITLE)
        changes.append(f"{SUMMARY}: title put in")
        head = f"{TITLE}\n{head}".strip()
    fresh = [each for each in notes if each not in head]
    changes += [f"{SUMMARY}: kept behind the title: {shorten(each, 160)}" for each in fresh]
    return "\n".join([head, *([""] if fresh else []), *fresh]) + "\n"


def _harmless(line: str) -> str:
    """A line in which nothing passes for the heading of a round."""
    return f"\\{line.lstrip()}" if line.lstrip().startswith("#") and "Iteration" in line else line


def _prose_of_lines(lines: Sequence[ReadLine], text: str) -> list[str]:
    """Words that stood in summary.jsonl, where no prose belongs."""
    found = []
    for each in lines:
        for key, value in each.extra.items():
            if isinstance(value, str) and value.strip() and value not in text:
                found.append(note(each.round.iteration if each.round else 0, f"{LINES} {key}", value))
    return found


def _changes(places: Sequence[Place], texts: Sequence[str]) -> list[str]:
    found = []
    for place, text in zip(places, texts, strict=True):
        before, after = place.section, read_journal(text).sections[0]
        where = f"Iteration {after.iteration}"
        pairs = [("heading", _heading(before), _heading(after))]
        pairs += [(label, before.text(label), after.text(label)) for label in LABELS]
        for name, old, new in pairs if not place.is_new else ():
            if old != new:
                found.append(f"{SUMMARY}: {where}: {name}: {shorten(old, 100) or 'nothing'} -> {shorten(new, 100)}")
    return found


def _heading(section: Section) -> str:
    lasted = "?" if section.duration is None else f"{section.duration:g}"
    return f"{section.iteration}, {section.time}, {lasted} s"


def _line(place: Place, section: Section, lines: Sequence[ReadLine]) -> RoundLine:
    """The figures of a section as they stand."""
    if place.seal is not None:
        return RoundLine.model_validate(files.parse_json(place.seal.line.encode()))
    facts = section.score_facts
    stated = failure_type_in(section)
    old = next((each.round for each in lines if each.round and each.round.iteration == place.section.iteration), None)
    if stated not in FAILURE_TYPES:
        stated = old.failure_type if old is not None and section.status == "success" else "unknown"
    value = {
        "iteration": place.number, "timestamp": section.time, "duration_s": int(section.duration or 0),
        "status": section.status, "exit_code": section.exit_code,
        "score": float(facts.score) if facts and facts.score is not None else None,
        "improvement": float(facts.improvement) if facts and facts.improvement is not None else None,
        "train_type": section.train_type, "failure_type": stated,
    }  # fmt: skip
    return RoundLine.model_validate(value)


def _line_changes(lines: Sequence[ReadLine], made: Sequence[RoundLine]) -> list[str]:
    found = [f"{LINES}:{each.number}: left out, for it cannot be read: {each.damage}" for each in lines if each.damage]
    old = {each.round.iteration: each for each in reversed(lines) if each.round is not None}
    for new in made:
        before = old.pop(new.iteration, None)
        if before is None or before.round is None:
            found.append(f"{LINES}: iteration {new.iteration}: put in")
            continue
        for key in KEYS:
            one, other = getattr(before.round, key), getattr(new, key)
            if one != other:
                found.append(f"{LINES}:{before.number}: {key}: {one} -> {other}")
        if before.keys:
            found.append(f"{LINES}:{before.number}: keys put right: {before.keys}")
    return found + [f"{LINES}:{each.number}: left out, for no round has its number" for each in old.values()]


def _seals(
    places: Sequence[Place], texts: Sequence[str], lines: Sequence[RoundLine], sections: Sequence[Section], facts: Facts
) -> list[Seal]:
    known = match_rounds(sections, facts.scores or Scores([]))
    last = max((place.seal.log_line for place in places if place.seal is not None), default=0)
    found = []
    for place, text, line, facts_of in zip(places, texts, lines, known, strict=True):
        old = place.seal
        found.append(
            Seal(
                iteration=place.number,
                section="\n" + text,
                line=files.dump_json_line(line.to_json()).decode(),
                submissions=old.submissions if old else [each.submission_id for each in facts_of.own],
                log_line=old.log_line if old else last,
                request=old.request if old else "",
            )
        )
    return found
