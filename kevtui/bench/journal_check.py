"""What the machine's files say of an agent's journal: a mark for each round, and its breaches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kev.autorl.journal.checking import check_journal
from kev.autorl.journal.facts import read_facts
from kev.autorl.journal.findings import SUMMARY, Finding
from kev.autorl.journal.lines import told_of
from kev.autorl.journal.written import Written, read_written
from kev.autorl.workspace import Workspace
from kev.clock import Clock
from kev.errors import KevError
from kevtui.bench.files_cache import signature_of
from kevtui.bench.snapshot import Journal, JournalEntry

LEGEND = "✓ as the machine has it, ✗ not"
MOST_BREACHES = 20
"""Of a round, and of the files as a whole."""


class JournalCheck:
    """Holds the last check; it is made again when one of the files behind it changed."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace = workspace
        self._clock = clock
        self._signatures: object = None
        self._breaches: Mapping[int | None, tuple[str, ...]] = {}
        self._is_compared = False
        self._note = ""

    def mark(self, entries: Sequence[JournalEntry]) -> Journal:
        """`entries` with their marks; nothing is checked before there is one."""
        if not entries:
            return Journal()
        workspace = self._workspace
        # Not agent.log: it grows with every line that a training prints.
        paths = (workspace.summary, workspace.summary_lines, workspace.scores, workspace.run_meta)
        signatures = [signature_of(path) for path in paths]
        if signatures != self._signatures:
            self._signatures = signatures
            try:
                self._check(entries)
            except KevError as error:
                self._is_compared, self._breaches, self._note = False, {}, f"not checked: {error}"
        known = True if self._is_compared else None
        marked = tuple(
            replace(entry, holds=False if breaches else known, breaches=breaches)
            for entry in entries
            for breaches in [self._breaches.get(entry.number, ())]
        )
        return Journal(marked, self._breaches.get(None, ()), self._note)

    def _check(self, entries: Sequence[JournalEntry]) -> None:
        written = read_written(self._workspace.summary.parent)
        facts = read_facts(self._workspace, self._clock)
        found = check_journal(written, facts)
        self._is_compared = facts.scores is not None
        self._note = LEGEND if self._is_compared else f"{LEGEND}; scores are not compared"
        self._breaches = _by_round(found, entries, written)


def _by_round(
    found: Sequence[Finding], entries: Sequence[JournalEntry], written: Written
) -> dict[int | None, tuple[str, ...]]:
    """The words of each breach under the number of its round; under None those of the files as a whole."""
    lines = {number: value["iteration"] for number, value in told_of(written.lines or b"")}
    words: dict[int | None, list[str]] = defaultdict(list)
    for each in found:
        if each.file == SUMMARY:
            before = [entry.number for entry in entries if entry.line is not None and entry.line <= (each.line or 0)]
            number = before[-1] if before else None
        else:
            number = lines.get(each.line or 0)
        words[number].append(each.words())
    return {number: tuple(told[:MOST_BREACHES]) for number, told in words.items()}
