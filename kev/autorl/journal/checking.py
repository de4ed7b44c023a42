"""A journal against the ten rules and the machine's files, whoever wrote it."""

from collections.abc import Iterator

from kev.autorl.journal.check_figures import check_scores, check_times
from kev.autorl.journal.check_form import check_code, check_form, check_sequence, decode
from kev.autorl.journal.check_lines import check_lines
from kev.autorl.journal.check_prose import check_evidence, check_failure, check_training
from kev.autorl.journal.facts import Facts, read_facts
from kev.autorl.journal.findings import LINES, SUMMARY, Finding
from kev.autorl.journal.lines import read_lines
from kev.autorl.journal.rounds import Round, match_rounds
from kev.autorl.journal.seals import check_seals
from kev.autorl.journal.section import MOST_ROUNDS, TITLE, Journal, read_journal
from kev.autorl.journal.written import Written, read_written
from kev.autorl.workspace import Workspace
from kev.clock import Clock
from kev.errors import KevError


def check_journal(written: Written, facts: Facts) -> list[Finding]:
    """Every breach, in the order of the files and their lines."""
    text, found = decode(written.summary or b"", SUMMARY)
    journal = read_journal(text)
    _, bad = decode(written.lines or b"", LINES)
    found = [*found, *bad, *_check(journal, written, facts), *check_seals(written.seals, text, journal, written.lines)]
    if not journal.has_title:
        found.append(Finding(10, "title", SUMMARY, 1, text.partition("\n")[0], TITLE))
    if len(journal.sections) == MOST_ROUNDS:
        last = journal.sections[-1]
        found.append(Finding(2, "too_many", SUMMARY, last.line, f"Iteration {last.iteration}", f"{MOST_ROUNDS}"))
    order = {SUMMARY: 0, LINES: 1}
    return sorted(found, key=lambda each: (order[each.file], each.line or 0, each.rule))


def _check(journal: Journal, written: Written, facts: Facts) -> Iterator[Finding]:
    sections = journal.sections
    known = None if facts.scores is None else match_rounds(sections, facts.scores)
    sealed = {seal.iteration for seal in written.seals}
    yield from check_sequence(journal)
    for place, section in enumerate(sections):
        each = Round(place, sections, known, facts, section.iteration in sealed)
        yield from check_form(section)
        yield from check_code(section)
        for check in (check_scores, check_times, check_training, check_failure, check_evidence):
            yield from check(each)
    lines = None if written.lines is None else read_lines(written.lines)
    yield from check_lines(sections, lines, known)


def in_words(workspace: Workspace, clock: Clock) -> str:
    """What can be said of a run's journal in a line. Never raises for what an agent wrote."""
    try:
        written = read_written(workspace.reports)
        if written.summary is None and written.lines is None:
            return "none"
        found = check_journal(written, read_facts(workspace, clock))
        rounds = len(written.sections())
    except (KevError, OSError) as error:
        return f"cannot be read: {error}"
    said = "1 round" if rounds == 1 else f"{rounds} rounds"
    if not found:
        return f"{said}, no breach"
    return f"{said}, {len(found)} {'breach' if len(found) == 1 else 'breaches'}: see `journal check`"
