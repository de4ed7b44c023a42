"""Everything known of a row of a bench, as (heading, facts)."""

import shlex

from kevtui import format as figures
from kevtui.bench import words
from kevtui.bench.panels import findings, journal, submissions
from kevtui.bench.snapshot import BenchSnapshot, JournalEntry, RunRow, Submission
from kevtui.screens.details import Facts

Sections = list[tuple[str, Facts]]


def of_row(snapshot: BenchSnapshot, key: str) -> Sections:
    """What is known of the row called `key`; [] where that is nothing."""
    if snapshot.run is not None:
        for each in snapshot.run.submissions:
            if submissions.key_of(each) == key:
                return [(f"submission {each.number}", _of_submission(each))]
        for entry in snapshot.run.journal.entries:
            if journal.key_of(entry) == key:
                return [(f"iteration {entry.number}", _of_entry(entry, snapshot.run.journal.note))]
    rows = snapshot.comparison.rows if snapshot.comparison is not None else ()
    found = next((row for row in rows if row.key == key), None)
    if found is not None:
        return [(found.run_id, _of_run(found))]
    for place, finding in enumerate(snapshot.findings):
        if findings.key_of(place, finding) == key:
            return [(finding.path, [("what", "what it last held stays in use"), ("reason", finding.reason)])]
    return []


def _of_submission(each: Submission) -> Facts:
    return [
        ("is", words.standing(each) + (", the best of the run" if each.best else "")),
        ("score", words.score(each.score)),
        ("baseline", words.score(each.baseline)),
        ("improvement", words.gain(each.improvement)),
        ("handed in after", figures.age(each.at_s)),
        ("model", each.model_path or figures.MISSING),
        ("error", each.error or "none"),
    ]


def _of_entry(entry: JournalEntry, note: str) -> Facts:
    checked = {True: "the machine agrees", False: "breaches the rules", None: note or "not checked"}[entry.holds]
    return [
        ("check", checked),
        *(("breach", breach) for breach in entry.breaches),
        ("status", words.outcome(entry)),
        ("at", entry.at or figures.MISSING),
        ("took", figures.age(entry.duration_s)),
        ("score", words.score(entry.score)),
        ("improvement", words.gain(entry.improvement)),
        ("type", entry.train_type or figures.MISSING),
        ("failure", entry.failure_named or "none named"),
        ("configuration", entry.configuration or figures.MISSING),
        ("what", entry.what or figures.MISSING),
        ("why", entry.why or figures.MISSING),
        ("problem or progress", entry.problem or figures.MISSING),
        ("line", figures.MISSING if entry.line is None else f"{entry.line} of summary.md"),
    ]


def _of_run(row: RunRow) -> Facts:
    facts = [
        ("agent", row.agent),
        ("task", row.task),
        ("state", str(row.state)),
        ("began", row.started or figures.MISSING),
        ("driver model", row.driver_model or figures.MISSING),
        ("base model", row.base_model or figures.MISSING),
        ("baseline", words.score(row.baseline)),
        ("best", words.score(row.best)),
        ("improvement", words.gain(row.improvement)),
        ("submissions", figures.MISSING if row.submissions is None else str(row.submissions)),
        ("time", words.used(row.used_s, row.timeout_s)),
        ("final verdict", row.verdict or figures.MISSING),
        ("rules", row.rules or figures.MISSING),
        ("workspace", row.workspace or figures.MISSING),
    ]
    return [*facts, ("to watch it", f"kevtui session {shlex.quote(row.workspace)}")] if row.workspace else facts
