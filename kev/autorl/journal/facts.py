"""What the machine's files of a run say, against which a journal is composed and checked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kev import files
from kev.autorl.journal.failures import Evidence, Failure, classify, log_lines, read_signs
from kev.autorl.journal.findings import Language
from kev.autorl.journal.section import exit_code_in
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


@dataclass(slots=True)
class Facts:
    """The files of one run as they are now. What is None is not there, or cannot be believed: `notes` says which."""

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
    _sources: ReadSources | None = None
    _changed: list[str | None] = field(default_factory=list)

    def notes(self, language: Language = "en") -> list[str]:
        """What is not compared, a line each."""
        words = {what: NOT_COMPARED[what][language == "zh"] for what in NOT_COMPARED}
        return [visible(f"{words[what]}: {why}") for what, why in self.lacking]

    @property
    def baseline(self) -> float | None:
        return None if self.scores is None else self.scores.baseline

    @property
    def lasted(self) -> float | None:
        """Seconds that the run lasts or took: no less than its submissions say, whatever the wall clock did."""
        if self.meta is None:
            return None
        elapsed = [each.elapsed_seconds or 0.0 for each in self.scores.entries] if self.scores else []
        return max([self.meta.duration(self.now), *elapsed])

    @property
    def exit_line(self) -> tuple[RunLine, int] | None:
        """The last line of run.log that has the agent's exit code, and that code."""
        found = [(line, code) for line in self.run_log or () if (code := exit_code_in(line.message)) is not None]
        return found[-1] if found else None

    def training(self, file: str = "") -> Training:
        """What the source trains with, or its file called `file`."""
        if self.code is None:
            return Training()
        if self._sources is None:
            self._sources = read_code(self.code)
        if file not in self._trainings:
            self._trainings[file] = training_in(self._sources, file)
        return self._trainings[file]

    def code_changed_at(self) -> str | None:
        """Local `YYYY-MM-DD HH:MM` of the newest source; None without any."""
        if not self._changed:
            paths = [] if self.code is None else self.code.rglob("*.py")
            times = [path.lstat().st_mtime for path in paths if path.is_file()]
            newest = datetime.fromtimestamp(max(times)).astimezone() if times else None
            self._changed.append(None if newest is None else f"{newest:%Y-%m-%d %H:%M}")
        return self._changed[0]

    def failure(
        self, entries: Sequence[ScoreEntry], exit_code: int | None, *, after_line: int = 0
    ) -> tuple[Failure | None, int]:
        """Why a round with these submissions failed, by the agent's log behind a line; and the last line of the log."""
        signs, behind = read_signs((), "agent.log"), _Behind(after_line)
        if self.agent_log is not None and self.agent_log.is_file() and not self.agent_log.is_symlink():
            with self.agent_log.open("rb") as stream:
                signs = read_signs(behind.lines(log_lines(stream)), self.agent_log.name)
        lines = [(line.number, line.message) for line in self.run_log or ()]
        heard = Evidence("agent.log", behind.last, behind.text) if behind.text else None
        ended = self.exit_line
        if ended is not None and ended[1] == exit_code:
            heard = Evidence("run.log", ended[0].number, ended[0].message)
        return classify(signs, exit_code=exit_code, submissions=entries, run_log=lines, last=heard), behind.last


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
