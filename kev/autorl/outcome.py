"""What came of a run: its row of `results.csv`, and the summary that is shown at its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kev.autorl.agent_folder import Agent
from kev.autorl.grader import Grader
from kev.autorl.measuring import GRADED
from kev.records.autorl import ResultRow
from kev.text import visible


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    final: Mapping[str, Any] | None
    """What the grader said at last."""
    why: str | None
    """Why there is no final; None with one."""
    exit_code: int | None
    """The agent's, 128 + N where signal N ended it; None where it never began."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that is over."""

    row: ResultRow
    errors: int
    """Submissions whose grading failed."""
    timeout_s: float
    exit_code: int | None
    why: str | None
    """Why there is no verdict; None with one."""
    best_submission: int | None

    def to_json(self) -> dict[str, Any]:
        more = {"errors": self.errors, "timeout_s": self.timeout_s, "exit_code": self.exit_code, "why": self.why}
        return self.row.to_json() | more | {"best_submission": self.best_submission}


def outcome_of(agent: Agent, grader: Grader, started: datetime, ending: Ending) -> Outcome:
    """The row, from what the grader knows and from nothing in the workspace."""
    ledger, clock, directory = grader.ledger, grader.run_clock, grader.run.workspace.directory
    best, baseline = ledger.best(), ledger.baseline_score
    ended = None if clock is None else clock.ended_at
    duration = 0.0 if clock is None else (clock.elapsed() if ended is None else ended - clock.started_at)
    final = ending.final or {}
    verdict = final.get("verdict")
    row = ResultRow(
        run_id=directory.name,
        timestamp=started.isoformat(timespec="seconds"),
        task=grader.run.task,
        agent=agent.name,
        driver_model=agent.config.driver_model,
        base_model=grader.run.base.resolve().name,
        baseline=baseline,
        best_score=None if best is None else best.score,
        improvement=None if best is None else best.improvement,
        submissions=len(ledger.submissions),
        duration_s=max(0, round(duration)),
        success=verdict in GRADED,
        workspace=str(directory),
        verdict=verdict or ending.why,
        final_score=final.get("score"),
        final_baseline=final.get("baseline"),
        rules=grader.run.rules,
    )
    return Outcome(
        row,
        errors=sum(each.error is not None for each in ledger.submissions.values()),
        timeout_s=grader.run.timeout_s,
        exit_code=ending.exit_code,
        why=ending.why or final.get("error"),
        best_submission=None if best is None else best.submission_id,
    )


def in_words(found: Outcome) -> str:
    """The summary, some lines for people; the verdict is the last."""
    row = found.row
    best = "nothing was graded"
    if row.best_score is not None:
        gained = "" if row.improvement is None else f", {row.improvement:+g}"
        best = f"{row.best_score:g} (submission {found.best_submission}){gained}"
    ended = "the agent never began" if found.exit_code is None else f"the agent ended with {found.exit_code}"
    verdict = visible(row.verdict or "none")
    if row.final_score is not None and row.final_baseline is not None:
        verdict += f": {row.final_score:g} on hidden items, where the base has {row.final_baseline:g}"
    elif found.why is not None and found.why != row.verdict:
        verdict += f": {visible(found.why)}"
    lines = {
        "run": f"{row.agent} on {row.task}, base {row.base_model}",
        "workspace": row.workspace,
        "baseline": "not measured" if row.baseline is None else f"{row.baseline:g}",
        "best": best,
        "submissions": f"{row.submissions}, {found.errors} of them failed",
        "time": f"{row.duration_s:,} of {found.timeout_s:,.0f} s; {ended}",
        "verdict": verdict,
    }
    return "".join(f"{name:<12}{words}\n" for name, words in lines.items())
