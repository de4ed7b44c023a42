"""One run from the files of its workspace."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.journal.check_form import decode
from kev.autorl.journal.lines import told_of
from kev.autorl.journal.seals import MOST_BYTES
from kev.autorl.scores import Scores, best_of, read_scores
from kev.autorl.workspace import GRADER, STORE, RunName, Workspace
from kev.clock import Clock
from kev.errors import DamagedFile, KevError, UsageError
from kev.records.autorl import RunMeta
from kev.records.base import read_record
from kev.text import shorten
from kevtui.bench import journal_text
from kevtui.bench.files_cache import FilesCache, signature_of
from kevtui.bench.grading import GradingWatch
from kevtui.bench.journal_check import JournalCheck
from kevtui.bench.snapshot import (
    AgentLog,
    Evaluation,
    FailureCount,
    Final,
    Journal,
    JournalEntry,
    Run,
    RunState,
    Submission,
    TimeBudget,
)
from kevtui.observe.log_tail import LogTail
from kevtui.observe.snapshot import Finding

LOG_LINES = 200
LONGEST_LOG_LINE = 1000


class WorkspaceView:
    """Looks at one workspace again and again; a look costs what changed."""

    def __init__(self, directory: Path, cache: FilesCache, clock: Clock) -> None:
        self.workspace = Workspace(directory)
        self._check = JournalCheck(self.workspace, clock)
        self._cache = cache
        self._grading = GradingWatch(store_of(directory))
        self._log = LogTail(self.workspace.agent_log)
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._log_damage = ""

    def look(self, now: datetime) -> Run:
        workspace = self.workspace
        time = time_of(self._cache.get(workspace.run_meta, read_meta), now)
        scores = self._cache.get(workspace.scores, read_scores) or Scores([])
        journal = self._journal()
        submissions = submissions_of(scores)
        name, task = workspace.directory.name, workspace.directory.parent.name
        return Run(
            workspace=str(workspace.directory),
            task=task,
            agent=agent_of(name),
            time=time,
            baseline=scores.baseline,
            submissions=submissions,
            evaluation=self._evaluation(time),
            journal=journal,
            failures=failures_of(journal.entries, submissions),
            final=self._cache.get(workspace.final, _read_final),
            log=self._agent_log(now),
        )

    def findings(self) -> Iterator[Finding]:
        """What cannot be believed inside files that can be read; damaged files are the cache's to tell."""
        scores = self._cache.get(self.workspace.scores, read_scores)
        for words in scores.findings[:20] if scores else ():
            yield Finding(self.workspace.scores.name, words)
        if self._log_damage:
            yield Finding(self.workspace.agent_log.name, self._log_damage)

    def _evaluation(self, time: TimeBudget) -> Evaluation:
        return self._grading.look(time.used_s if time.state is RunState.RUNNING else None)

    def _journal(self) -> Journal:
        sections = self._cache.get(self.workspace.summary, _read_sections) or []
        lines = self._cache.get(self.workspace.summary_lines, _read_lines) or []
        return self._check.mark(journal_text.merge(sections, lines))

    def _agent_log(self, now: datetime) -> AgentLog:
        path = self.workspace.agent_log
        self._log_damage = ""
        partial = b""
        try:
            while True:
                tail = self._log.read()
                if tail.restarted:
                    self._lines.clear()
                self._lines.extend(_log_line(line) for line in tail.lines)
                partial = tail.partial
                if not tail.more:
                    break
        except DamagedFile as error:
            self._log_damage = error.reason
        except KevError:
            return AgentLog()
        signature = signature_of(path)
        age = None if signature is None else max(0.0, now.timestamp() - signature[0] / 1e9)
        lines = [*self._lines, *([_log_line(partial)] if partial.strip() else [])]
        return AgentLog(tuple(lines[-LOG_LINES:]), str(path), age)


def store_of(directory: Path) -> Path:
    """Where the grader of the run in `directory` keeps its events."""
    task = directory.parent
    return task.parent / GRADER / "runs" / task.name / directory.name / STORE


def agent_of(name: str) -> str:
    """The agent in the name of a workspace; the whole name where it has another form."""
    try:
        return RunName.parse(name).agent
    except UsageError:
        return name


def time_of(meta: RunMeta | None, now: datetime) -> TimeBudget:
    """The time of a run whose `run_meta.json` is `meta`."""
    if meta is None:
        return TimeBudget()
    used, timeout = meta.duration(now.timestamp()), float(meta.timeout_s)
    if meta.end_time is not None:
        state = RunState.ENDED
    else:
        state = RunState.TIME_UP if used >= timeout else RunState.RUNNING
    return TimeBudget(
        state, _moment(meta.start_time), _moment(meta.end_time), _moment(meta.last_submit_time), timeout, used
    )


def submissions_of(scores: Scores) -> tuple[Submission, ...]:
    best = best_of(scores.entries)
    return tuple(
        Submission(
            each.submission_id, each.elapsed_seconds, shorten(each.model_path, 300),
            each.score if each.is_valid else None, each.baseline_score, each.improvement if each.is_valid else None,
            each.label, None if each.error is None else shorten(each.error, 1000), each.not_finite,
            best=best is not None and each.submission_id == best.submission_id,
        )
        for each in scores.entries
    )  # fmt: skip


def failures_of(entries: Sequence[JournalEntry], submissions: Sequence[Submission]) -> tuple[FailureCount, ...]:
    """How often the journal names each type of failure, and the gradings that failed, apart."""
    counted = Counter(entry.failure_type for entry in entries if entry.failure_named)
    failed = sum(each.error is not None for each in submissions)
    if failed:
        counted["grading failed"] += failed
    return tuple(FailureCount(kind, count) for kind, count in counted.most_common())


def read_meta(path: Path) -> RunMeta:
    """Raises NotFound, or DamagedFile."""
    return read_record(path, RunMeta)


def _read_text(path: Path) -> str:
    return decode(files.read_bytes(path, limit=MOST_BYTES), path.name)[0]


def _read_sections(path: Path) -> list[JournalEntry]:
    return journal_text.read_sections(_read_text(path))


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [value for _, value in told_of(_read_text(path).encode())]


def _read_final(path: Path) -> Final:
    value = files.read_json(path)
    if not isinstance(value, dict):
        raise DamagedFile(path, "does not hold an object")
    number = value.get("submission_id")
    words = [str(each) for each in value["tampering"]] if isinstance(value.get("tampering"), list) else []
    return Final(
        str(value.get("verdict") or "none"),
        number if type(number) is int else None,
        files.as_finite(value.get("score")),
        files.as_finite(value.get("baseline")),
        shorten("; ".join([*([str(value["error"])] if value.get("error") else []), *words]), 600),
    )


def _moment(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _log_line(line: bytes) -> str:
    return shorten(line[: 4 * LONGEST_LOG_LINE].decode(errors="backslashreplace").rstrip(), LONGEST_LOG_LINE)
