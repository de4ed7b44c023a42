"""Rule 9: `summary.jsonl` has one line for each section, in their order, with the same figures and nothing else."""

from collections.abc import Iterator, Sequence

from kev.autorl.journal.check_prose import failure_type_in
from kev.autorl.journal.findings import LINES, SUMMARY, Finding
from kev.autorl.journal.lines import MOST_LINES, ReadLine, RoundLine
from kev.autorl.journal.rounds import RoundFacts, agrees
from kev.autorl.journal.section import Section


def check_lines(
    sections: Sequence[Section], lines: Sequence[ReadLine] | None, known: Sequence[RoundFacts] | None
) -> Iterator[Finding]:
    """`known` has the machine's facts of each section, where there are scores."""
    if lines is None:
        if sections:
            yield Finding(9, "no_lines", LINES, None, "", f"{len(sections)} lines")
        return
    if len(lines) == MOST_LINES:
        yield Finding(9, "too_many", LINES, lines[-1].number, "", f"{MOST_LINES} lines")
    places = {section.iteration: place for place, section in reversed(list(enumerate(sections)))}
    seen: dict[int, int] = {}
    before = 0
    for each in lines:
        if each.keys:
            yield Finding(9, "line_keys", LINES, each.number, each.keys, "")
        if each.round is None:
            yield Finding(9, "line_damaged", LINES, each.number, "", each.damage)
            continue
        number = each.round.iteration
        if number in seen:
            yield Finding(9, "line_repeated", LINES, each.number, f"iteration {number}", f"line {seen[number]}")
            continue
        if number < before:
            yield Finding(9, "line_order", LINES, each.number, f"iteration {number}", f"after iteration {before}")
        seen[number], before = each.number, max(before, number)
        place = places.get(number)
        if place is None:
            yield Finding(9, "line_extra", LINES, each.number, f"iteration {number}", "")
        else:
            yield from _differences(each, each.round, sections[place], None if known is None else known[place])
    for number, place in sorted(places.items()):
        if number not in seen:
            yield Finding(9, "line_missing", SUMMARY, sections[place].line, f"Iteration {number}", "")


def _differences(line: ReadLine, said: RoundLine, section: Section, known: RoundFacts | None) -> Iterator[Finding]:
    facts = section.score_facts
    pairs: list[tuple[str, object, object]] = [
        ("timestamp", said.timestamp, section.time),
        ("duration_s", said.duration_s, section.duration),
        ("status", said.status, section.status),
        ("exit_code", said.exit_code, section.exit_code),
        ("score", said.score, facts.score if facts else None),
        ("improvement", said.improvement, facts.improvement if facts else None),
        ("train_type", said.train_type, section.train_type),
    ]
    stated_type = failure_type_in(section)
    if stated_type is not None or section.status == "failure":
        pairs.append(("failure_type", said.failure_type, stated_type))
    for key, in_line, in_section in pairs:
        if not _same(in_line, in_section):
            machine = "null" if in_section is None else f"{in_section}"
            if key in ("score", "improvement") and known is not None and known.entry is not None:
                value = getattr(known.entry, key)
                machine = "null" if value is None else f"{value:g}"
            shown = "null" if in_line is None else f"{in_line}"
            yield Finding(9, "line_differs", LINES, line.number, f"{key}: {shown}", machine)


def _same(one: object, other: object) -> bool:
    """Whether a line has what a section has."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return agrees(other, one)  # the section may be rounded, the line is for computing
    return one == other
