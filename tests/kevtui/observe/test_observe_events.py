"""What happened while we watched, and what the journal says happened before."""

import json
from typing import Any

from kevtui.observe.snapshot import Severity


def test_a_state_that_changes_while_we_watch_is_an_event(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching()
    observer.observe()
    checkout.watch("r9-a", {"status": "done"})
    assert [(event.subject, event.text) for event in observer.observe().events] == [
        ("r9-a/trial-0", "running → done")]  # fmt: skip


def test_a_journal_is_read_by_its_newlines_alone_and_its_times_as_moments(checkout: Any, watching: Any) -> None:
    rows = [
        {"round": 7, "spec": "s", "spend_before": 0, "budgets": 1, "candidates": {}, "at": "2027-03-28T00:10Z"},
        {"round": 8, "spec": "s\u2028t\x85", "spend_before": 0, "budgets": 1, "at": "2027-03-28T01:20+01:00"},
        {"round": 9, "spec": "s", "spend_before": 0, "budgets": 1, "candidates": {"4b": "4b-a"},
         "at": "2027-03-28 00:30"},
    ]  # fmt: skip
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n\n{torn\n"
    checkout.write("runs/autoresearch-sessions.jsonl", text.encode())
    snapshot = watching().observe()
    told = {event.subject: event for event in snapshot.events}
    assert list(told) == ["r9", "r7", "r8"], "a time without a zone is no moment, so it is not put in order"
    assert told["r9"].at is None and "has no time zone" in told["r9"].text and "4b: 4b-a" in told["r9"].text
    assert told["r7"].at < told["r8"].at
    assert snapshot.findings[0].reason.startswith("line 5: ")


def test_a_line_of_the_journal_keeps_its_severity_whatever_word_its_writer_had_for_it(
    checkout: Any, watching: Any
) -> None:
    words = {"info": Severity.INFO, "warning": Severity.WARNING, "critical": Severity.CRITICAL,
             "error": Severity.CRITICAL, "a new word": Severity.INFO}  # fmt: skip
    checkout.write("runs/night-state.json", {"session": "night", "authorization_usd": 50})
    lines = [{"at": f"2027-03-28T00:0{n}:00Z", "kind": "alert", "severity": word, "text": word}
             for n, word in enumerate(words)]  # fmt: skip
    checkout.write("runs/night-events.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    told = {event.text: event.severity for event in watching("night").observe().events}
    assert told == words


def test_damaged_lines_past_those_that_are_named_are_counted(checkout: Any, watching: Any) -> None:
    checkout.state("dusk")
    checkout.write("runs/dusk-events.jsonl", b"{\n" * 11)
    (finding,) = watching("dusk").observe().findings
    assert finding.reason.count("line ") == 8 and finding.reason.endswith("; and 3 more lines")
