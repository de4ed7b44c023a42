"""What the files of one trial directory say of its progress; remembers, so that only new lines are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from kev.errors import DamagedFile, NotFound
from kev.files import UTF16_BOMS
from kevtui.observe import step_lines
from kevtui.observe.derive import MeasuredRate, Sample, rate_from_samples
from kevtui.observe.health import ARRIVAL_LEAST_S, METRICS_LEAST_S, Health
from kevtui.observe.history import History
from kevtui.observe.lister import Signature
from kevtui.observe.log_tail import LogTail, OpenTail, Tailing
from kevtui.observe.newest import NewestSamples
from kevtui.observe.records_cache import reason_of

if TYPE_CHECKING:
    from kev.records.step_metrics import StepMetrics

MOST_NAMED = 8
"""Damaged lines named one by one; the rest are counted."""

MOST_LATE = 64
"""Metrics of no known attempt that may come late in a row; more of them are a continuation."""


@dataclass(slots=True)
class Progress:
    """What is known at present. `kept_step` is the last step that survives a kill, as the log tells."""

    step: int | None = None
    steps: int | None = None
    loss: float | None = None
    finished: bool = False
    scoring: tuple[int, int] | None = None
    kept_step: int | None = None
    step_seen_at: datetime | None = None
    """When the last new step was seen here, UTC; None for one that was there when we came."""


@dataclass(slots=True)
class TrialLog:
    """Follows `train.log` and `metrics.jsonl` of one trial directory."""

    directory: str
    open_tail: OpenTail = LogTail
    progress: Progress = field(default_factory=Progress)
    history: History = field(default_factory=History)
    health: Health = field(default_factory=Health)
    changed_at: float | None = None
    """Monotonic moment of the last change seen here; None for files that have not moved since we came."""
    findings: dict[str, str] = field(default_factory=dict)
    _signatures: dict[str, Signature] = field(default_factory=dict)
    _log: Tailing | None = None
    _metrics: Tailing | None = None
    _arrivals: NewestSamples = field(default_factory=NewestSamples)
    _timed: NewestSamples = field(default_factory=NewestSamples)
    _rank: int | None = None
    """The rank whose metrics are drawn; None while there are none, and the log's own lines are drawn."""
    _last_metric: tuple[int, float] | None = None
    _utf16: bool = False
    _attempt: int | None = None
    """Of the newest metric."""
    _late: int = 0
    """Metrics in a row that are older than the newest."""
    _damage: list[str] = field(default_factory=list)
    _damaged_lines: int = 0

    def follow(self, files: dict[str, Signature], *, now: datetime, monotonic: float) -> bool:
        """Read what is new in the listed files; true if anything was."""
        log = self._moved("train.log", files)
        metrics = self._moved("metrics.jsonl", files)
        if log:
            self._follow_log(now, monotonic)
        if metrics:
            self._follow_metrics(now)
        return log or metrics

    def stood_still(self) -> None:
        """We were suspended: when lines came is unknown, so arrivals are timed anew."""
        self._arrivals.clear()
        if self._rank is None:
            self.health.restart_rate()

    def rate(self) -> MeasuredRate | None:
        """Steps per second by the trainer's own times, else by when its lines came."""
        return rate_from_samples(self._timed, "metrics") or rate_from_samples(self._arrivals, "arrival")

    @property
    def has_steps(self) -> bool:
        return self.progress.step is not None

    @property
    def has_clock(self) -> bool:
        return bool(self._timed) or bool(self._arrivals)

    def _moved(self, name: str, files: dict[str, Signature]) -> bool:
        signature = files.get(name)
        if signature is None:
            self.findings.pop(name, None)
        if signature is None or self._signatures.get(name) == signature:
            return False
        self._signatures[name] = signature
        return True

    # ---- train.log

    def _follow_log(self, now: datetime, monotonic: float) -> None:
        met = self._log is not None
        if self._log is None:
            self._log = self.open_tail(Path(self.directory, "train.log"))
        before = self.progress.step
        more = True
        while more:
            try:
                tail = self._log.read()
            except NotFound:
                self._signatures.pop("train.log", None)
                return
            except DamagedFile as error:
                self._signatures.pop("train.log", None)
                self.findings["train.log"] = reason_of(error)
                return
            more = tail.more
            if tail.restarted:
                self._begin_again()
                met = False
            if tail.first_line == 1 and tail.lines:
                self._utf16 = tail.lines[0].startswith(UTF16_BOMS)
            for line in tail.lines:
                self._take(step_lines.parse(line))
            if tail.partial.startswith(b"saved "):
                self._take(step_lines.Saved())
        self.findings.pop("train.log", None)
        if self._utf16:
            self.findings["train.log"] = "UTF-16 text, as some shells redirect it; no step in it is seen"
        if met:
            self.changed_at = monotonic
        if self.progress.step is not None and self.progress.step != before:
            self._arrived(self.progress.step, now, monotonic, timed=met)

    def _take(self, line: step_lines.Line | None) -> None:
        match line:
            case step_lines.Step(step=step, steps=steps, loss=loss, lost=lost):
                # A step after "saved" is a new attempt's.
                self.progress.finished = False
                self.progress.steps = steps
                if self._rank is None:
                    self.progress.step, self.progress.loss = step, loss
                    self.history.add(step, loss)
                    if loss is not None or lost:
                        self.health.loss(step, lost=lost)
            case step_lines.Resumed(step=step):
                self.progress.kept_step = step
                self.progress.finished = False
                self.progress.scoring = None
                self._arrivals.clear()
                if self._rank is None:
                    self.progress.step = step
                    self.history.rewind(step)
                    self.health.clear()
            case step_lines.Saved():
                self.progress.finished = True
            case step_lines.Scoring(done=done, of=of):
                self.progress.scoring = (done, of)
            case step_lines.Kept(step=step):
                self.progress.kept_step = step
            case None:
                pass

    def _arrived(self, step: int, now: datetime, monotonic: float, *, timed: bool) -> None:
        if not timed:
            # Lines that were there when we came have no arrival; the next one is measured from itself.
            return
        self.progress.step_seen_at = now
        if (last := self._arrivals.last) is not None and step <= last.step:
            self._arrivals.clear()
        self._arrivals.append(Sample(monotonic, step))
        if self._rank is None:
            self.health.at_step(monotonic, step, least_s=ARRIVAL_LEAST_S)

    def _begin_again(self) -> None:
        self._arrivals.clear()
        if self._rank is None:
            self.progress = Progress()
            self.history.clear()
            self.health.clear()

    # ---- metrics.jsonl

    def _follow_metrics(self, now: datetime) -> None:
        from kev.records.step_metrics import StepMetricsReader

        met = self._metrics is not None
        if self._metrics is None:
            self._metrics = self.open_tail(Path(self.directory, "metrics.jsonl"), carriage_returns=False)
        more = True
        while more:
            try:
                tail = self._metrics.read()
            except (NotFound, DamagedFile) as error:
                self._signatures.pop("metrics.jsonl", None)
                if isinstance(error, DamagedFile):
                    self.findings["metrics.jsonl"] = reason_of(error)
                return
            more = tail.more
            if tail.restarted:
                self._forget_metrics()
            # A reader a piece: one that remembered every record of a long run would grow with it.
            lines = [*tail.lines, tail.partial] if tail.partial.endswith(b"}") else tail.lines
            reading = StepMetricsReader().feed(b"".join(line + b"\n" for line in lines))
            for damage in reading.damage:
                self._name(damage.reason, None if tail.first_line is None else tail.first_line + damage.number - 1)
            for point in reading.points:
                self._take_metric(point)
            for damage in reading.damage:
                self.health.damaged(lines[damage.number - 1], newest=self.progress.step)
        if met and self._timed:
            self.progress.step_seen_at = now
        self._say_damage()

    def _take_metric(self, point: StepMetrics) -> None:
        ended = point.ended
        if ended is None:
            return
        if self._rank is None or point.rank < self._rank:
            # Every rank logs every step; the lowest speaks for all.
            self._forget_metrics(damage=False)
            self.history.clear()
            self.health.clear()
            self._rank = point.rank
        if point.rank != self._rank:
            return
        t = ended.timestamp()
        if (point.step, t) == self._last_metric:
            return
        if self._is_late(point, t):
            self.history.insert(point.step, None if point.loss is None else float(point.loss), t)
            return
        self._attempt = point.attempt
        if (last := self._timed.last) is not None and (point.step <= last.step or t <= last.t):
            # A continuation, or a clock set back: times before and after it do not belong together.
            self._timed.clear()
            self.health.clear()
        self._timed.append(Sample(t, point.step))
        self._follow_health(point, t)
        self._last_metric = (point.step, t)
        loss = None if point.loss is None else float(point.loss)
        self.history.add(point.step, loss, t)
        self.progress.step, self.progress.loss = point.step, loss
        self.progress.steps = point.steps or self.progress.steps

    def _is_late(self, point: StepMetrics, t: float) -> bool:
        """Whether it is an earlier step of the same attempt, which another writer or a second try put behind it.

        Without the number of the attempt many in a row are a continuation, on a machine whose clock is behind.
        """
        newest = self._last_metric
        if newest is None or point.attempt != self._attempt or point.step > newest[0] or t > newest[1]:
            self._late = 0
            return False
        self._late += 1
        return point.attempt is not None or self._late <= MOST_LATE

    def _follow_health(self, point: StepMetrics, t: float) -> None:
        self.health.at_step(t, point.step, least_s=METRICS_LEAST_S)
        # Null is written where it was not a finite number; a writer that does not log it at all leaves it out.
        if "loss" in point.model_fields_set:
            self.health.loss(point.step, lost=point.loss is None)
        if "grad_norm" in point.model_fields_set:
            self.health.gradient(point.step, inf if point.grad_norm is None else float(point.grad_norm))

    def _forget_metrics(self, *, damage: bool = True) -> None:
        self._timed.clear()
        self._rank = self._last_metric = self._attempt = None
        self._late = 0
        if damage:
            self._damage.clear()
            self._damaged_lines = 0
            self.history.clear()
            self.health.clear()

    def _name(self, reason: str, line: int | None) -> None:
        self._damaged_lines += 1
        if len(self._damage) < MOST_NAMED:
            self._damage.append(f"line {line}: {reason}" if line else reason)

    def _say_damage(self) -> None:
        if not self._damage:
            self.findings.pop("metrics.jsonl", None)
            return
        more = self._damaged_lines - len(self._damage)
        self.findings["metrics.jsonl"] = "; ".join(self._damage) + (f"; and {more:,} more lines" if more else "")
