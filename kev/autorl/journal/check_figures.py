"""The figures of a section against the machine's: scores, exit codes, durations."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from kev.autorl.journal.check_form import is_time
from kev.autorl.journal.facts import Facts
from kev.autorl.journal.findings import SUMMARY, Finding
from kev.autorl.journal.rounds import Round, RoundFacts, agrees
from kev.autorl.journal.section import SCORE, STATUS, ScoreFacts, Section, number
from kev.autorl.scores import improvement_of

NONE_WORDS = {"", "-", "—", "–", "n/a", "na", "none", "null", "无", "unknown", "x"}
"""What people write where there is no figure."""


def check_scores(found: Round) -> Iterator[Finding]:
    """Score, improvement and best. Without scores.json a journal is still held against itself."""
    section, known = found.section, found.machine
    stated = section.score_facts
    if stated is None:
        return
    line = section.line_of(SCORE)
    for name, text in zip(("Score", "Improvement", "Best"), section.score_texts, strict=True):
        if text.lower() not in NONE_WORDS and not _is_figure(text):
            code = "not_finite" if text.lower().strip("+-") in ("nan", "inf", "infinity") else "score_line"
            yield Finding(0, code, SUMMARY, line, f"{name}: {text}", _machine(name, known))
    if known is not None and stated.score is not None and known.entry is None:
        yield Finding(0, "invented", SUMMARY, line, f"{stated.score:g}", _known_scores(known))
    if known is not None and known.entry is not None:
        yield from _improvement(stated, known, found.facts, line)
    elif known is None and stated.score is None and stated.improvement:
        yield Finding(0, "improvement", SUMMARY, line, f"{stated.improvement:g}", "no score")
    yield from _best(found, stated, line)


def _improvement(stated: ScoreFacts, known: RoundFacts, facts: Facts, line: int) -> Iterator[Finding]:
    entry = known.entry
    assert entry is not None
    baseline = facts.baseline if entry.baseline_score is None else entry.baseline_score
    machine = improvement_of(entry.score, baseline)
    if machine is None:
        if stated.improvement is not None:
            yield Finding(0, "improvement", SUMMARY, line, f"{stated.improvement:g}", "no baseline")
    elif stated.improvement is None or not agrees(stated.improvement, machine):
        said = "none" if stated.improvement is None else f"{stated.improvement:g}"
        yield Finding(0, "improvement", SUMMARY, line, said, f"{machine:g}")


def _best(found: Round, stated: ScoreFacts, line: int) -> Iterator[Finding]:
    section, before = found.section, found.before
    said = "none" if stated.best is None else f"{stated.best:g} (iter {stated.best_iteration})"
    rounds = {each.iteration: each.score_facts for each in [section, *before]}
    scored = {number: each.score for number, each in rounds.items() if each is not None and each.score is not None}
    holder = max(scored, key=lambda number: (scored[number], -number), default=None)
    machine = "none" if holder is None else f"{scored[holder]:g} (iter {holder})"
    if stated.best_iteration is not None and stated.best_iteration > section.iteration:
        yield Finding(0, "best_later", SUMMARY, line, said, machine)
        return
    values = None if found.machine is None else found.machine.best_values()
    if values is None:  # no scores.json: the rounds themselves have to do, where all are there
        whole = set(range(1, section.iteration)) <= rounds.keys()
        values = {scored[holder]} if holder is not None and (whole or (stated.best or 0.0) < scored[holder]) else None
    elif values:
        machine = " or ".join(f"{value:g}" for value in sorted(values))
        holders = [number for number, score in sorted(scored.items()) if any(agrees(score, value) for value in values)]
        machine += f" (iter {holders[0]})" if holders else ""
    if stated.best is None:
        known = found.machine
        wrong = bool(values) and (known is None or any(each.is_valid for each in known.covered))
    else:
        right = values is None or any(agrees(stated.best, value) for value in values)
        wrong = not right or not _held_by(stated, [*before, section], found.known)
    if wrong:
        yield Finding(0, "best", SUMMARY, line, said, machine)


def _held_by(stated: ScoreFacts, sections: Sequence[Section], known: Sequence[RoundFacts] | None) -> bool:
    """Whether the round that the best is said to be from has that score, or a submission of it has."""
    places = [place for place, each in enumerate(sections) if each.iteration == stated.best_iteration]
    if not places or stated.best is None:
        # A round that is missing is a finding of its own.
        return stated.best_iteration in range(1, sections[-1].iteration)
    facts = sections[places[0]].score_facts
    scores = [facts.score if facts else None, *(each.score for each in (known[places[0]].own if known else ()))]
    return any(score is not None and (agrees(stated.best, score) or agrees(score, stated.best)) for score in scores)


def check_times(found: Round) -> Iterator[Finding]:
    """Duration and exit code, and whether status and exit code fit."""
    section, before, facts = found.section, found.before, found.facts
    lasted = facts.lasted
    earlier = before[-1] if before else None
    if section.duration is not None:
        said = f"{section.duration:g} s"
        if lasted is not None and section.duration > math.ceil(lasted) + 1:
            yield Finding(0, "duration", SUMMARY, section.line, said, f"{lasted:.0f} s of the run")
        elif earlier is not None and earlier.duration is not None and section.duration < earlier.duration:
            told = f"{earlier.duration:g} s in Iteration {earlier.iteration}"
            yield Finding(0, "duration", SUMMARY, section.line, said, told)
    if (
        earlier is not None
        and is_time(section.time)
        and is_time(earlier.time)
        and went_back(earlier.time, section.time)
    ):
        told = f"after {earlier.time} of Iteration {earlier.iteration}"
        yield Finding(0, "time", SUMMARY, section.line, section.time, told)
    code = section.exit_code
    if section.status == "success" and code:
        yield Finding(0, "status", SUMMARY, section.line_of(STATUS), f"success, exit_code={code}", "failure")
    ended = facts.ended_by(section.time)
    if found.is_last and ended is not None and code not in (None, ended[1]):
        told = f"{ended[1]} (run.log:{ended[0].number})"
        yield Finding(0, "exit_code", SUMMARY, section.line_of(STATUS), str(code), told)


def went_back(earlier: str, later: str) -> bool:
    """Whether local time went back by more than the hour that it repeats in autumn."""
    first, second = (datetime.strptime(text, "%Y-%m-%d %H:%M") for text in (earlier, later))  # noqa: DTZ007
    return second < first - timedelta(hours=1)


def _is_figure(text: str) -> bool:
    return number(text) is not None


def _machine(name: str, known: RoundFacts | None) -> str:
    if known is None:
        return "a number"
    if name == "Best":
        return " or ".join(f"{value:g}" for value in sorted(known.best_values())) or "none"
    return _known_scores(known)


def _known_scores(known: RoundFacts) -> str:
    if known.later is not None:
        late = known.later
        return f"submission {late.submission_id} has it, {late.elapsed_seconds or 0:.0f} s after the run began"
    scores = [f"{each.score:g} (submission {each.submission_id})" for each in known.present if each.is_valid]
    return ", ".join(scores[-5:]) or "no score"
