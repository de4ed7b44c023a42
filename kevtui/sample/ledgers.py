"""The sample session's records on the disk: what was launched, watched, leased, read, spent, and what happened."""

import os
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.records.base import write_record
from kev.records.event import Event
from kev.records.intent import ReadIntent
from kev.records.lease import Lease
from kev.records.session import GatewayBudget, SessionState, SessionStudy, SpendReading
from kev.records.spawn import Attempt, SpawnRecord
from kev.records.watch import TrialState, WatchRecord
from kevtui.sample import outcome
from kevtui.sample.setting import AUTHORIZATION, BASELINE, NOTICE, RESERVE, ROUND, SESSION, STUDIES, SampleStudy, Trial


class Ledgers:
    """Every record under `root`, each rewritten as the story goes on."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.runs = root / "runs"
        self._leases = root / "volumes" / "kev-leases"
        self._clock = clock
        self._attempts: dict[str, dict[str, list[Attempt]]] = {}
        self._watched: dict[str, dict[str, TrialState]] = {}
        self._held: dict[Path, Lease] = {}
        self._readings: list[SpendReading] = []
        self._studies = {
            study.name: SessionStudy(bound_usd=study.bound, calls={}, status="planned") for study in STUDIES
        }

    @property
    def now(self) -> datetime:
        return self._clock.now()

    def tell(self, kind: str, text: str, *, subject: str = "", severity: str = "info") -> None:
        """Add one event to the journal."""
        event = Event(at=self.now.isoformat(), kind=kind, severity=severity, subject=subject, text=text, who="sample")
        files.append(self.runs / f"{SESSION}-events.jsonl", files.dump_json_line(event.to_json()))

    # ---- launching and watching

    def launch(self, study: SampleStudy, trial: Trial, timeout: int) -> Attempt:
        """Record one more attempt at `trial`."""
        attempts = self._attempts.setdefault(study.name, {}).setdefault(trial.label, [])
        number = len(attempts) + 1
        attempt = Attempt(
            nonce=os.urandom(16).hex(),
            call=f"fc-sample-{study.name}-{trial.index}-{number}",
            at=self.now.timestamp(),
        )
        attempts.append(attempt)
        ledger = self._attempts[study.name]
        record = SpawnRecord(
            sample=True,
            name=study.name,
            calls={label: entries[-1].call for label, entries in ledger.items()},
            attempts=ledger,
            bound_usd=study.bound,
            gpu=study.gpu,
            timeout=timeout,
            full_ft=study.full_ft,
            modal_retries=0,
        )
        write_record(self.runs / f"{study.name}.spawn.json", record)
        self._studies[study.name] = SessionStudy(bound_usd=study.bound, calls=record.calls, status="running")
        self._write_state()
        self.watch(study, trial, "running")
        return attempt

    def watch(self, study: SampleStudy, trial: Trial, status: str, *, launched: bool = False) -> None:
        """Record what the watcher sees of `trial`."""
        call = self._attempts[study.name][trial.label][-1].call
        state = TrialState(status=status, launched=launched, transient=0, call=call)
        self._watched.setdefault(study.name, {})[trial.label] = state
        self.pass_by(study)

    def pass_by(self, study: SampleStudy) -> None:
        """Rewrite the watcher's file, as it does on every pass while it lives."""
        if study.name in self._watched:
            record = WatchRecord(sample=True, calls=self._watched[study.name])
            write_record(self.runs / f"{study.name}.watch.json", record)

    def settle(self, study: SampleStudy) -> None:
        """Nothing of `study` can cost more."""
        self._studies[study.name] = self._studies[study.name].model_copy(update={"status": "done, pulled, read"})
        self._write_state()

    # ---- leases

    def hold(self, study: SampleStudy, trial: Trial, attempt: Attempt, number: int) -> None:
        """Take the lease of `trial` for `attempt`."""
        now = self.now.timestamp()
        path = self._leases / study.name / trial.directory / "attempt.json"
        self._held[path] = Lease(
            nonce=attempt.nonce, attempt=number, call_id=attempt.call, started=now, heartbeat=now, ended=None
        )
        write_record(path, self._held[path])

    def beat(self) -> None:
        """A heartbeat of every lease that is held."""
        for path, lease in self._held.items():
            self._held[path] = lease.model_copy(update={"heartbeat": self.now.timestamp()})
            write_record(path, self._held[path])

    def let_go(self, study: SampleStudy, trial: Trial) -> None:
        """End the lease of `trial`."""
        path = self._leases / study.name / trial.directory / "attempt.json"
        now = self.now.timestamp()
        write_record(path, self._held.pop(path).model_copy(update={"heartbeat": now, "ended": now}))

    # ---- reads

    def intend(self, arm: str, checkpoint: str, tags: Sequence[str]) -> None:
        """Launch the reads `tags` of `arm`: the intent is on the disk first, then its log begins."""
        jobs = ",".join(f"{checkpoint}@evals/sample-{tag}@r{ROUND}-{arm}-{tag}" for tag in tags)
        command = ["modal", "run", "modal_app.py::benchmarks", "--jobs", jobs, "--timeout", "1800"]
        intent = ReadIntent(sample=True, launched_at=self.now.timestamp(), commands=[command])
        write_record(self.runs / f"r{ROUND}-reads-{arm}.json", intent)
        files.write_atomic(self._read_log(arm), f"{NOTICE}\n".encode())

    def log_read(self, arm: str, line: str) -> None:
        """One line of the log of the reads of `arm`."""
        files.append(self._read_log(arm), f"{line}\n".encode())

    def land(self, name: str) -> None:
        """Write the rows of the read `name`."""
        made = [row.to_json() for row in outcome.rows(name)]
        files.write_atomic(self.runs / name / "rows.json", files.dump_json(made))

    def _read_log(self, arm: str) -> Path:
        return self.runs / f"r{ROUND}-reads-{arm}-0.log"

    # ---- money

    def read_meter(self, spent: Decimal, *, at: datetime | None = None) -> None:
        """Record a simulated reading of the meter, now unless `at` says otherwise."""
        reading = SpendReading(
            at=(at or self.now).isoformat(), metered_usd=BASELINE + spent, source="simulated meter of the sample"
        )
        self._readings.append(reading)
        self._write_state()

    def _write_state(self) -> None:
        state = SessionState(
            sample=True,
            notice=NOTICE,
            session=SESSION,
            simulated=True,
            authorization_usd=AUTHORIZATION,
            reserve_usd=RESERVE,
            baseline_usd=BASELINE,
            cycle=f"{self.now:%Y-%m}",
            readings=self._readings,
            studies=self._studies,
            ai_gateway=GatewayBudget(authorization_usd=Decimal("20"), spent_usd=Decimal("0.07")),
        )
        write_record(self.runs / f"{SESSION}-state.json", state)
