"""What the machine's files of a run say, against which a journal is composed and checked."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kev import files
from kev.autorl.journal.failures import Evidence, Failure, classify, log_lines, read_signs
from kev.autorl.journal.findings import Language
from kev.autorl.journal.section import exit_code_in, minute_of
from kev.autorl.journal.sources import Source, python_files
from kev.autorl.journal.training import ReadSources, Training, read_code, training_in
from kev.autorl.run_log import RunLine, parse_run_log
from kev.autorl.scores import Scores, read_scores
from kev.autorl.workspace import Workspace
from kev.clock import Clock
from kev.errors import DamagedFile, NotFound
from kev.records.autorl import RunMeta, ScoreEntry
from kev.records.base import read_record
from kev.text import visible

NOT_COMPARED = {
    "entries": ("an entry is not compared", "有一条记录未作比较"),
    "scores": ("scores are not compared", "得分未作比较"),
    "durations": ("durations are not compared", "耗时未作比较"),
    "exit codes": ("exit codes are not compared", "退出码未作比较"),
}
MOST_LOG = 64 * 1024 * 1024


@dataclass
class Facts:
    """The files of one run as they are now. What is None is not there, or cannot be believed: `notes` says which.

    What is worked out of them is kept, for it is asked of every round.
    """

    scores: Scores | None = None
    meta: RunMeta | None = None
    run_log: list[RunLine] | None = None
    agent_log: Path | None = None
    code: Path | None = None
    now: float = 0.0
    """Unix seconds."""
    lacking: list[tuple[str, str]] = field(default_factory=list)
    """What is not compared, and why."""
    _trainings: dict[str, Training] = field(default_factory=dict)

    def notes(self, language: Language = "en") -> list[str]:
        """What is not compared, a line each."""
        words = {what: NOT_COMPARED[what][language == "zh"] for what in NOT_COMPARED}
        return [visible(f"{words[what]}: {why}") for what, why in self.lacking]

    @property
    def baseline(self) -> float | None:
        return None if self.scores is None else self.scores.baseline

    @cached_property
    def lasted(self) -> float | None:
        """Seconds that the run lasts or took: no less than its submissions say, whatever the wall clock did."""
        if self.meta is None:
            return None
        elapsed = [each.elapsed_seconds or 0.0 for each in self.scores.entries] if self.scores else []
        return max([self.meta.duration(self.now), *elapsed])

    @cached_property
    def exit_line(self) -> tuple[RunLine, int] | None:
        """The last line of run.log that has the agent's exit code, and that code."""
        found = [(line, code) for line in self.run_log or () if (code := exit_code_in(line.message)) is not None]
        return found[-1] if found else None

    def ended_by(self, time: str) -> tuple[RunLine, int] | None:
        """`exit_line`, where a round of the local minute `time` was written no sooner."""
        ended = self.exit_line
        return ended if ended is not None and time >= ended[0].time[:16] else None

    def training(self, file: str = "") -> Training:
        """What the source trains with, or its file called `file`."""
        if self._read is None:
            return Training()
        if file not in self._trainings:
            self._trainings[file] = training_in(self._read, file)
        return self._trainings[file]

    @property
    def sources(self) -> Sequence[Source]:
        """The files under `code` that can be read as Python."""
        return self._read.sources if self._read is not None else ()

    @cached_property
    def _read(self) -> ReadSources | None:
        return None if self.code is None else read_code(self.code)

    @cached_property
    def code_changed_at(self) -> str | None:
        """Local `YYYY-MM-DD HH:MM` of the newest source; None without any."""
        times = []
        for path in python_files(self.code) if self.code is not None else ():
            with suppress(OSError):  # an agent at work moves its files
                times.append(path.lstat().st_mtime)
        return minute_of(max(times)) if times else None

    def failure(
        self, entries: Sequence[ScoreEntry], exit_code: int | None, *, after_line: int = 0
    ) -> tuple[Failure | None, int]:
        """Why a round with these submissions failed, by the agent's log behind a line; and the last line of the log."""
        behind = _Behind(after_line)
        signs = read_signs(behind.lines(self._log_lines()), "agent.log")
        lines = [(line.number, line.message) for line in self.run_log or ()]
        heard = Evidence("agent.log", behind.last, behind.text) if behind.text else None
        ended = self.exit_line
        if ended is not None and ended[1] == exit_code:
            heard = Evidence("run.log", ended[0].number, ended[0].message)
        return classify(signs, exit_code=exit_code, submissions=entries, run_log=lines, last=heard), behind.last

    def _log_lines(self) -> Iterator[tuple[int, str]]:
        """Those of agent.log; none of a link, or of a file that this user may not read."""
        path = self.agent_log
        if path is not None and path.is_file() and not path.is_symlink():
            with suppress(OSError), path.open("rb") as stream:
                yield from log_lines(stream)


def read_facts(workspace: Workspace, clock: Clock) -> Facts:
    """What can be believed of a run's files. Never raises for what they hold."""
    facts = Facts(code=workspace.code, agent_log=workspace.agent_log, now=clock.now().timestamp())
    try:
        facts.scores = read_scores(workspace.scores)
        facts.lacking += [("entries", f"{workspace.scores}: {finding}") for finding in facts.scores.findings]
    except (NotFound, DamagedFile) as error:
        facts.lacking.append(("scores", str(error)))
    try:
        facts.meta = read_record(workspace.run_meta, RunMeta)
    except (NotFound, DamagedFile) as error:
        facts.lacking.append(("durations", str(error)))
    try:
        facts.run_log = list(parse_run_log(files.read_bytes(workspace.run_log, limit=MOST_LOG)))
    except (NotFound, DamagedFile) as error:
        facts.lacking.append(("exit codes", str(error)))
    return facts


class _Behind:
    """Passes on the lines behind one, and keeps the number of the last."""

    def __init__(self, line: int) -> None:
        self._line = line
        self.last = line
        self.text = ""
        """The last that was not blank."""

    def lines(self, found: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        for number, text in found:
            if number > self._line:
                self.last = number
                self.text = text if text.strip() else self.text
                yield number, text
