"""What the store's events add up to: the submissions of a run, in order, and what became of each."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kev.autorl.noise import Baseline
from kev.autorl.scores import best_of, improvement_of
from kev.autorl.store import Event
from kev.records.autorl import ScoreEntry


@dataclass(slots=True)
class Submission:
    """One accepted submission. `grade` is None until it is graded."""

    number: int
    path: str
    """Relative to the workspace."""
    said: str
    """As the agent wrote it."""
    sha256: str
    """Of its sealed content."""
    timestamp: str
    elapsed: float
    gpus: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was decided while it was sealed: which of several files count, and what was put right."""
    grade: dict[str, Any] | None = None
    """`score`, `items`, `label`, `error`, `lineage`, `same_as`, `seconds`, as far as there are any."""

    @property
    def error(self) -> str | None:
        return self.grade.get("error") if self.grade else None

    def entry(self, baseline: float | None) -> ScoreEntry:
        """As `scores.json` has it."""
        grade = self.grade or {}
        score = grade.get("score")
        facts: dict[str, Any] = {
            "submission_id": self.number,
            "timestamp": self.timestamp,
            "model_path": self.said,
            "score": score,
            "baseline_score": baseline,
            "improvement": improvement_of(score, baseline),
            "elapsed_seconds": round(self.elapsed, 2),
        }
        facts |= {key: grade[key] for key in ("error", "label") if grade.get(key) is not None}
        return ScoreEntry.model_validate(facts)


@dataclass(slots=True)
class Ledger:
    """A run as its events tell it. `apply` takes them in order."""

    submissions: dict[int, Submission] = field(default_factory=dict)
    baseline: Baseline | None = None
    injected: float | None = None
    """A baseline that was set from outside, under the looser rules."""
    chosen: int | None = None
    tampering: list[str] = field(default_factory=list)
    """What was changed in the workspace that only the grader writes."""
    final: dict[str, Any] | None = None
    _by_content: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def replay(cls, events: Iterable[Event]) -> "Ledger":
        ledger = cls()
        for event in events:
            ledger.apply(event)
        return ledger

    def apply(self, event: Event) -> None:
        facts = event.facts
        match event.kind:
            case "accepted":
                made = Submission(**{**facts, "gpus": tuple(facts["gpus"]), "remarks": tuple(facts.get("remarks", ()))})
                self.submissions[made.number] = made
                self._by_content[made.path, made.sha256] = made.number
            case "graded":
                number = facts["number"]
                self.submissions[number].grade = {key: value for key, value in facts.items() if key != "number"}
            case "baseline":
                self.baseline = Baseline.model_validate(facts)
            case "baseline set":
                self.injected = facts["score"]
            case "chosen":
                self.chosen = facts["number"]
            case "tampered":
                self.tampering.append(facts["words"])
            case "final":
                self.final = facts

    @property
    def baseline_score(self) -> float | None:
        if self.injected is not None:
            return self.injected
        return None if self.baseline is None else self.baseline.score

    @property
    def waiting(self) -> list[Submission]:
        """Accepted and not graded yet, in order."""
        return [each for each in self.submissions.values() if each.grade is None]

    def find(self, path: str, sha256: str) -> Submission | None:
        """The submission of this content under this path, unless its grading failed: that is never an answer."""
        number = self._by_content.get((path, sha256))
        found = None if number is None else self.submissions[number]
        return None if found is None or found.error is not None else found

    def graded_as(self, sha256: str, before: int) -> Submission | None:
        """An earlier submission of the same content, under whatever path, that has a score."""
        for each in self.submissions.values():
            if each.number < before and each.sha256 == sha256 and each.grade and each.grade.get("score") is not None:
                return each
        return None

    def used(self) -> int:
        """Contents that have a score or may get one: what a limit on submissions counts."""
        return len({each.sha256 for each in self.submissions.values() if each.error is None})

    def entries(self) -> list[ScoreEntry]:
        """What `scores.json` holds: everything that was graded."""
        baseline = self.baseline_score
        return [each.entry(baseline) for each in self.submissions.values() if each.grade is not None]

    def best(self) -> ScoreEntry | None:
        return best_of(self.entries())

    def choice(self) -> Submission | None:
        """What the final is graded on: what the agent chose, else its best; None where nothing has a score."""
        number = self.chosen
        if number is None:
            best = self.best()
            number = None if best is None else best.submission_id
        return None if number is None else self.submissions[number]
