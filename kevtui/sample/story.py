"""What happens in the sample session, and when.

Times are story seconds; `stretch` real seconds pass in each. A study with one trial too slow for its timeout is stopped
and continued, another is at risk of that for most of the story, a third is done early and read, one of its reads fails
and is launched again; then the round is read out.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final

from kev import files
from kev.clock import Clock
from kev.records.base import write_record
from kevtui.sample import outcome, setting
from kevtui.sample.ledgers import Ledgers
from kevtui.sample.setting import READS, ROUND, STUDIES, SampleStudy, Trial
from kevtui.sample.training import Training

TICK_S: Final = 0.5
BEAT_EVERY_S: Final = 3.0
METER_EVERY_S: Final = 8.0
SCORED_RECORDS: Final = 40
FAILING_READ: Final = "r7-4b-b-hard"

Moment = tuple[float, Callable[[], None]]


class Story:
    """Plays the sample session into `root`. `play` yields the real seconds to wait before the next tick."""

    def __init__(self, root: Path, clock: Clock, stretch: float) -> None:
        self._root = root
        self._clock = clock
        self._stretch = stretch
        self._timeouts = {study.name: max(1, round(study.timeout * stretch)) for study in STUDIES}
        self._spec = setting.spec(self._timeouts)
        self._ledgers = Ledgers(root, clock)
        self._training: dict[str, Training] = {}
        self._stopped_at: dict[str, float] = {}
        self._read: set[str] = set()
        self._coming: list[Moment] = []
        self._story_s = 0.0
        self._started = clock.monotonic()

    def play(self) -> Iterator[float]:
        """Write the whole session; ends when it is over."""
        self._register()
        for study in STUDIES:
            self._at(study.launched, partial(self._launch, study))
        beat, meter = 0.0, METER_EVERY_S
        while self._coming or self._training:
            self._story_s = (self._clock.monotonic() - self._started) / self._stretch
            self._do_what_is_due()
            for training in self._training.values():
                training.advance(self._story_s)
            self._end_what_is_over()
            if self._story_s >= beat:
                beat = self._story_s + BEAT_EVERY_S
                self._ledgers.beat()
                for study in STUDIES:
                    self._ledgers.pass_by(study)
            if self._story_s >= meter:
                meter = self._story_s + METER_EVERY_S
                self._ledgers.read_meter(self._spent())
            yield TICK_S * self._stretch
        self._ledgers.read_meter(self._spent())
        self._ledgers.tell("session", "the sample session is over", severity="info")

    # ---- the plot

    def _register(self) -> None:
        files.write_atomic(self._root / "SAMPLE.txt", f"{setting.NOTICE}\n".encode())
        write_record(self._root / "experiments" / "rounds" / f"r{ROUND}.json", self._spec)
        for study in STUDIES:
            plan = [trial.to_json() for trial in setting.plan(study)]
            files.write_atomic(self._root / self._spec.studies[study.name].plan, files.dump_json(plan))
        for size in self._spec.parents:
            for tag in READS:
                self._ledgers.land(f"r6-{size}-{tag}")
        self._ledgers.tell("session", f"the sample session begins; {setting.NOTICE}")
        for hours, spent in zip(range(3, -1, -1), setting.SPENT_BEFORE, strict=True):
            self._ledgers.read_meter(spent, at=self._clock.now() - timedelta(hours=hours))

    def _launch(self, study: SampleStudy) -> None:
        self._ledgers.tell("launch", f"launched, at most ${study.bound}, simulated", subject=study.name)
        for trial in study.trials:
            self._at(trial.starts, partial(self._train, study, trial, attempt=1, first_step=0))

    def _train(self, study: SampleStudy, trial: Trial, *, attempt: int, first_step: int) -> None:
        entry = self._ledgers.launch(study, trial, self._timeouts[study.name])
        self._ledgers.hold(study, trial, entry, attempt)
        self._training[trial.arm] = Training(
            self._ledgers.runs / study.name / trial.directory, trial, attempt=attempt, first_step=first_step,
            began=self._story_s, at=self._clock.now(), stretch=self._stretch, resumable=study.full_ft,
        )  # fmt: skip
        self._stopped_at[trial.arm] = self._story_s + self._timeouts[study.name] / self._stretch

    def _time_out(self, study: SampleStudy, trial: Trial, training: Training) -> None:
        subject = f"{study.name}/{trial.label}"
        self._ledgers.let_go(study, trial)
        self._ledgers.watch(study, trial, "timeout")
        self._ledgers.tell("timeout", f"timed out at step {training.step}", subject=subject, severity="warning")
        self._at(self._story_s + 2.0, partial(self._continue, study, trial, training))

    def _continue(self, study: SampleStudy, trial: Trial, before: Training) -> None:
        text = f"continued from step {before.kept_step} as attempt {before.attempt + 1}"
        self._ledgers.tell("resume", text, subject=f"{study.name}/{trial.label}")
        self._train(study, trial, attempt=before.attempt + 1, first_step=before.kept_step)

    def _end_what_is_over(self) -> None:
        for study in STUDIES:
            for trial in study.trials:
                training = self._training.get(trial.arm)
                if training is None:
                    continue
                if training.finished:
                    del self._training[trial.arm]
                    self._score(study, trial, training)
                elif self._story_s >= self._stopped_at[trial.arm]:
                    del self._training[trial.arm]
                    self._time_out(study, trial, training)

    def _score(self, study: SampleStudy, trial: Trial, training: Training) -> None:
        for part in range(1, 5):
            done = SCORED_RECORDS * part // 4
            self._at(self._story_s + 0.3 * part, partial(training.score, done, SCORED_RECORDS))
        self._at(self._story_s + 1.5, partial(self._finish, study, trial))

    def _finish(self, study: SampleStudy, trial: Trial) -> None:
        self._ledgers.let_go(study, trial)
        self._ledgers.watch(study, trial, "done")
        self._ledgers.tell("done", "trained and scored", subject=f"{study.name}/{trial.label}")
        self._at(self._story_s + 0.5, partial(self._launch_reads, study, trial, READS))

    def _launch_reads(self, study: SampleStudy, trial: Trial, tags: tuple[str, ...]) -> None:
        self._ledgers.intend(trial.arm, f"/runs/{study.name}/{trial.directory}/checkpoint", tags)
        self._ledgers.watch(study, trial, "done", launched=True)
        self._ledgers.tell("reads", f"reads launched: {', '.join(tags)}", subject=trial.arm)
        again = len(tags) < len(READS)
        for number, tag in enumerate(tags):
            name = f"r{ROUND}-{trial.arm}-{tag}"
            if name == FAILING_READ and not again:
                self._at(self._story_s + 2.5, partial(self._fail_read, study, trial, name))
            else:
                self._at(self._story_s + 1.2 + 1.1 * number, partial(self._land, study, trial, name))

    def _fail_read(self, study: SampleStudy, trial: Trial, name: str) -> None:
        self._ledgers.log_read(trial.arm, f"{name}: FAILED ConnectionError: made-up answer 503 of the gateway")
        self._ledgers.tell("reads", f"read {name} failed; it is launched again", subject=trial.arm, severity="warning")
        self._at(self._story_s + 4.0, partial(self._launch_reads, study, trial, ("hard",)))

    def _land(self, study: SampleStudy, trial: Trial, name: str) -> None:
        self._ledgers.log_read(trial.arm, f"evaluated {SCORED_RECORDS}/{SCORED_RECORDS}")
        self._ledgers.land(name)
        if any(not (self._ledgers.runs / f"r{ROUND}-{trial.arm}-{tag}" / "rows.json").exists() for tag in READS):
            return
        self._read.add(trial.arm)
        if all(other.arm in self._read for other in study.trials):
            self._ledgers.settle(study)
            self._at(self._story_s + 1.0, self._read_out)

    def _read_out(self) -> None:
        record = outcome.readout(self._spec, self._read)
        write_record(self._ledgers.runs / f"r{ROUND}-readout" / f"round{ROUND}.json", record)
        named = ", ".join(f"{size} {arm or 'none'}" for size, arm in record.candidates.items())
        self._ledgers.tell("readout", f"read out; candidates {named}", subject=f"r{ROUND}")

    # ---- the stage

    def _at(self, story_s: float, action: Callable[[], None]) -> None:
        self._coming.append((story_s, action))

    def _do_what_is_due(self) -> None:
        due = sorted((moment for moment in self._coming if moment[0] <= self._story_s), key=lambda moment: moment[0])
        self._coming = [moment for moment in self._coming if moment[0] > self._story_s]
        for _, action in due:
            action()

    def _spent(self) -> Decimal:
        hours = Decimal(self._story_s * self._stretch) / 3600
        return setting.SPENT_BEFORE[-1] + (setting.DOLLARS_PER_HOUR * hours).quantize(Decimal("0.00000001"))
