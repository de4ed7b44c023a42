"""A round from the files of its run: a section and a line, with the caller's prose or the evidence in its place."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from kev.autorl.journal.check_prose import CITES, failure_type_in, metric_text
from kev.autorl.journal.excerpts import key_lines, snippet
from kev.autorl.journal.facts import Facts
from kev.autorl.journal.failures import Failure
from kev.autorl.journal.findings import Language
from kev.autorl.journal.lines import RoundLine
from kev.autorl.journal.rounds import RoundFacts, match_rounds
from kev.autorl.journal.seals import Seal
from kev.autorl.journal.section import (
    CODE,
    FAILURE,
    PROGRESS,
    SCORE,
    SETTINGS,
    SNIPPET,
    STATUS,
    SUCCESS,
    TYPE,
    WHAT,
    WHY,
    Section,
    compose_section,
    minute_of,
    without_marks,
)  # fmt: skip
from kev.autorl.journal.training import Training
from kev.autorl.metrics import compute_metrics
from kev.autorl.scores import DECIMALS, Scores, best_of, improvement_of
from kev.errors import Refused, UsageError
from kev.records.autorl import ScoreEntry

NO_FIGURE = "N/A"
WORDS: dict[str, tuple[str, str]] = {
    "unsaid": ("no reason was given", "未说明理由"),
    "first": ("the first round", "首轮"),
    "nothing new": ("the same failure as in the round before: nothing new", "与上一轮失败类型相同：无新增"),
    "submitted": ("submitted", "提交"),
    "no submission": ("nothing was submitted", "未提交"),
    "source": ("by its source", "依据源码"),
}


@dataclass(frozen=True, slots=True)
class Order:
    """What the caller says of a round; what is empty is filled with the evidence that is found."""

    iteration: int | None = None
    submission: int | None = None
    """The submission that it tells of; None for those that no round tells of yet."""
    exit_code: int | None = None
    """Of the round's training process."""
    source: str = ""
    """The file under code/ that the round trained with, where there are several."""
    what: str = ""
    why: str = ""
    progress: str = ""
    code: str = ""
    snippet: str = ""

    @classmethod
    def from_json(cls, value: Any) -> "Order":
        """Raises UsageError for what is no object of these keys."""
        if not isinstance(value, dict):
            raise UsageError("the prose is one JSON object")
        numbers = {"iteration", "submission", "exit_code"}
        names = {each.name for each in fields(cls)}
        for key, each in value.items():
            if key not in names:
                raise UsageError(f"{key!r:.60}: no such key; there are {', '.join(sorted(names))}")
            right = type(each) is int or each is None if key in numbers else isinstance(each, str)
            if not right:
                raise UsageError(f"{key}: {'a whole number' if key in numbers else 'text'}")
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Composed:
    """A round, ready to be written."""

    section: str
    line: RoundLine
    submissions: list[int] = field(default_factory=list)
    log_line: int = 0


def compose_round(
    order: Order, iteration: int, sections: Sequence[Section], seals: Sequence[Seal], facts: Facts, language: Language
) -> Composed:
    """Round `iteration`, which follows `sections`. Raises Refused where the files do not say enough."""
    if facts.scores is None or facts.lasted is None:
        raise Refused(f"no round can be composed: {'; '.join(facts.notes(language))}")
    known = match_rounds(sections, facts.scores)
    entries, entry = _entries(order, facts.scores, known, seals)
    exit_code = order.exit_code
    if exit_code is None and facts.exit_line is not None:
        exit_code = facts.exit_line[1]
    failure, log_line = facts.failure(entries, exit_code, after_line=seals[-1].log_line if seals else 0)
    bad = failure is not None or bool(exit_code)
    score = entry.score if entry is not None and entry.is_valid else None
    improvement = improvement_of(score, entry.baseline_score if entry is not None else None)
    if improvement is None:
        improvement = improvement_of(score, facts.baseline)
    training = facts.training(order.source)
    duration = max(
        math.floor(facts.lasted),
        *(math.ceil(each.elapsed_seconds or 0.0) for each in entries),
        *(math.ceil(each.duration or 0.0) for each in sections[-1:]),
        0,
    )
    line = RoundLine(
        iteration=iteration, timestamp=minute_of(facts.now),
        duration_s=duration, status="failure" if bad else "success", exit_code=exit_code, score=score,
        improvement=improvement, train_type=training.kind, failure_type=failure.type if failure else "unknown",
    )  # fmt: skip
    said = {
        STATUS: f"{FAILURE if bad else SUCCESS} (exit_code={'unknown' if exit_code is None else exit_code})",
        SCORE: score_text(score, improvement, *_best(iteration, _so_far(entries, facts.scores), sections, known)),
        TYPE: training.kind,
        SETTINGS: training.settings_text(),
        WHAT: without_marks(order.what) or _what(training, entry, language),
        WHY: _why(order.why, iteration, sections, facts, language),
        PROGRESS: _progress(order.progress, failure, sections, facts.scores, bad=bad, language=language),
        CODE: key_lines(order.code, training, facts.sources),
        SNIPPET: snippet(order.snippet, training, facts.sources, sections),
    }
    section = compose_section(iteration, line.timestamp, duration, said)
    return Composed(section, line, [each.submission_id for each in entries], log_line)


def figure(value: float | None) -> str:
    """A score as the journal has it."""
    return NO_FIGURE if value is None else str(round(float(value), DECIMALS))


def score_text(score: float | None, improvement: float | None, best: float | None, iteration: int | None) -> str:
    """The score line."""
    held = "" if best is None else f" (iter {iteration})"
    return f"{figure(score)} | Improvement: {figure(improvement)} | Best: {figure(best)}{held}"


def metrics_text(scores: Scores) -> str:
    """The process metrics of what was submitted so far, as far as they can be computed."""
    found = compute_metrics(scores, None)
    parts = [f"valid_submission_rate={metric_text(found.valid_submission_rate)}"]
    if found.first_valid_idx is not None:
        parts.append(f"first_valid_idx={found.first_valid_idx}")
    if found.time_to_first_improvement is not None:
        parts.append(f"time_to_first_improvement={metric_text(found.time_to_first_improvement)}s")
    return ", ".join(parts)


def evidence_text(iteration: int, sections: Sequence[Section], facts: Facts) -> str:
    """What is on record of the round before `iteration`, or of the base."""
    before = next((each for each in reversed(sections) if each.iteration < iteration), None)
    if before is None:
        return f"scores.json: baseline={figure(facts.baseline)}"
    score, improvement, best = before.score_texts
    return f"scores.json: Iteration {before.iteration} score={score}, improvement={improvement}, best={best}"


def words(name: str, language: Language) -> str:
    return WORDS[name][language == "zh"]


def _entries(
    order: Order, scores: Scores, known: Sequence[RoundFacts], seals: Sequence[Seal]
) -> tuple[list[ScoreEntry], ScoreEntry | None]:
    """The submissions of the round, and the one whose score it has."""
    told = {number for seal in seals for number in seal.submissions}
    told |= {each.submission_id for facts in known for each in facts.covered}
    fresh = [each for each in scores.entries if each.submission_id not in told]
    if order.submission is None:
        return fresh, best_of(fresh) or (fresh[-1] if fresh else None)
    found = next((each for each in scores.entries if each.submission_id == order.submission), None)
    if found is None:
        raise Refused(
            f"scores.json has no submission {order.submission}; what is being graded gets its round afterwards"
        )
    return [found], found


def _so_far(entries: Sequence[ScoreEntry], scores: Scores) -> list[ScoreEntry]:
    """Those of a round, and what was submitted before them: a round may tell of a later one first."""
    last = max((each.submission_id for each in entries), default=0)
    return [each for each in scores.entries if each.submission_id <= last]


def _best(
    iteration: int, entries: Sequence[ScoreEntry], sections: Sequence[Section], known: Sequence[RoundFacts]
) -> tuple[float | None, int | None]:
    """The best score so far and the round that has it; the first of equals."""
    found: Mapping[int, tuple[float, int]] = {
        each.submission_id: (each.score or 0.0, number)
        for number, own in [  # what an earlier round has is that round's
            (iteration, tuple(entries)),
            *((section.iteration, facts.own) for section, facts in zip(sections, known, strict=True)),
        ]
        for each in own
        if each.is_valid
    }
    if not found:
        return None, None
    return max(found.values(), key=lambda held: (held[0], -held[1]))


def _what(training: Training, entry: ScoreEntry | None, language: Language) -> str:
    done = f"{training.kind} ({words('source', language)}{': ' if training.where else ''}{training.where})"
    sent = words("no submission", language)
    if entry is not None:
        sent = f"{words('submitted', language)} {entry.model_path} (submission {entry.submission_id})"
    return without_marks(f"{done}; {sent}")


def _why(said: str, iteration: int, sections: Sequence[Section], facts: Facts, language: Language) -> str:
    said, evidence = without_marks(said), evidence_text(iteration, sections, facts)
    if said and CITES.search(said):
        return said
    return f"{said or words('first' if iteration == 1 else 'unsaid', language)} ({evidence})"


def _progress(
    said: str, failure: Failure | None, sections: Sequence[Section], scores: Scores, *, bad: bool, language: Language
) -> str:
    parts = [without_marks(said), metrics_text(scores)]
    if bad:
        kind = failure.type if failure else "unknown"
        shown = without_marks(str(failure.evidence)) if failure else "run.log"
        parts.append(f"failure_type={kind} ({shown})")
        before = sections[-1] if sections else None
        if before is not None and before.status == "failure" and failure_type_in(before) == kind:
            parts.append("" if "新增" in said else f"{words('nothing new', language)} / 无新增")
    return "; ".join(part for part in parts if part)
