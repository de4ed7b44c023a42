"""The loop of a read: every record that has no outcome yet is asked, and each outcome is written before it counts."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from kev.data.record import DataRecord
from kev.errors import KevError, Refused
from kev.predictors.date_facts import with_date_facts
from kev.predictors.prediction import Outcome, Predictor, Refusal, Request, request_of
from kev.reads.journal import Entry, Journal
from kev.reads.records import Selection
from kev.reads.rows import prediction_json, rows_of

PROGRESS_EVERY = 50
Say = Callable[[str], None]


class RecordFailed(KevError):
    """A record was refused in a read that must cover all of them; `record_id` names it."""

    def __init__(self, record_id: str, reason: str) -> None:
        self.record_id = record_id
        super().__init__(f"{record_id}: {reason}")


@dataclass
class Progress:
    """How far a read has come, counted in records."""

    requested: int
    recorded_before: int = 0
    outcomes: list[Entry | None] = field(default_factory=list)
    done: int = 0
    shown: int = 0
    """How many were done when that was last said."""

    @property
    def entries(self) -> list[Entry]:
        """The outcomes there are, in the order of the records."""
        return [entry for entry in self.outcomes if entry is not None]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records that are asked together, by their places; those in `missing` have no outcome yet."""

    places: range
    missing: frozenset[int]


class Reading:
    """One attempt at a read. `run` may be called once."""

    def __init__(
        self, predictor: Predictor, selection: Selection, journal: Journal, say: Say, *, date_facts: bool = False
    ) -> None:
        self._predictor = predictor
        self._selection = selection
        self._journal = journal
        self._say = say
        self._requests = [_request(record, date_facts) for record in selection.records]
        self._hashes = [request.sha256() for request in self._requests]
        self.progress = Progress(len(self._requests))

    def run(self) -> Progress:
        """Ask what is missing. Raises RecordFailed, or what the predictor raises; outcomes so far are kept."""
        self._take_over()
        batches = list(self._batches())
        if self._predictor.concurrency == 1:
            for batch in batches:
                self._settle(batch, self._ask(batch))
        else:
            self._run_threads(batches)
        self._show(last=True)
        return self.progress

    def _take_over(self) -> None:
        progress = self.progress
        records = self._selection.records
        progress.outcomes = [
            self._journal.take(sha256, record.meta.id) for sha256, record in zip(self._hashes, records, strict=True)
        ]
        progress.done = progress.recorded_before = len(progress.entries)
        progress.shown = progress.done
        if self._journal.attempt > 1:
            self._say(
                f"resumed: attempt {self._journal.attempt}, {progress.done}/{progress.requested} records read before"
            )
        if self._journal.damaged_lines:
            self._say(f"!!! {len(self._journal.damaged_lines)} damaged lines of predictions.jsonl are read again")
        for entry, record in zip(progress.outcomes, records, strict=True):
            if entry is not None and entry.error is not None:
                self._check_may_skip(record, entry.error, remote=entry.error.startswith("HTTP "))

    def _batches(self) -> Iterator[_Batch]:
        # Batches lie at fixed places, so that a continued read asks the same requests together as one that never died:
        # what shares a pass moves the last digits.
        size = self._predictor.batch
        for start in range(0, len(self._requests), size):
            places = range(start, min(start + size, len(self._requests)))
            missing = frozenset(place for place in places if self.progress.outcomes[place] is None)
            if missing:
                yield _Batch(places, missing)

    def _ask(self, batch: _Batch) -> list[Outcome]:
        return self._predictor.predict([self._requests[place] for place in batch.places])

    def _settle(self, batch: _Batch, outcomes: Sequence[Outcome]) -> None:
        entries = {
            place: self._entry(place, outcome)
            for place, outcome in zip(batch.places, outcomes, strict=True)
            if place in batch.missing
        }
        self._journal.add(list(entries.values()))
        for place, entry in entries.items():
            self.progress.outcomes[place] = entry
        self.progress.done += len(entries)
        self._show()
        for place, outcome in zip(batch.places, outcomes, strict=True):
            if place in batch.missing and isinstance(outcome, Refusal):
                remote = outcome.status is not None
                self._check_may_skip(self._selection.records[place], outcome.reason, remote=remote)

    def _entry(self, place: int, outcome: Outcome) -> Entry:
        record, sha256 = self._selection.records[place], self._hashes[place]
        if isinstance(outcome, Refusal):
            return Entry(sha256, record.meta.id, [], None, outcome.reason)
        return Entry(sha256, record.meta.id, rows_of(record, outcome), prediction_json(record, outcome))

    def _check_may_skip(self, record: DataRecord, reason: str, *, remote: bool) -> None:
        # What an endpoint refuses is a figure of the endpoint. What does not fit our own context is a mistake in the
        # suite or in the command, unless the data were never promised to fit.
        if not remote and not self._selection.may_skip:
            raise RecordFailed(record.meta.id, reason)

    def _run_threads(self, batches: Sequence[_Batch]) -> None:
        waiting = iter(batches)
        under_way: dict[Future[list[Outcome]], _Batch] = {}
        failure: BaseException | None = None
        with ThreadPoolExecutor(self._predictor.concurrency, thread_name_prefix="read") as threads:
            while True:
                while failure is None and len(under_way) < self._predictor.concurrency:
                    batch = next(waiting, None)
                    if batch is None:
                        break
                    under_way[threads.submit(self._ask, batch)] = batch
                if not under_way:
                    break
                try:
                    finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
                except BaseException:
                    self._predictor.stop()
                    raise
                for future in finished:
                    batch = under_way.pop(future)
                    try:
                        self._settle(batch, future.result())
                    except BaseException as error:
                        # What else is under way is paid for: it is waited for and written before the read ends.
                        failure = failure or error
                        self._predictor.stop()
        if failure is not None:
            raise failure

    def _show(self, *, last: bool = False) -> None:
        progress = self.progress
        due = progress.done // PROGRESS_EVERY > progress.shown // PROGRESS_EVERY
        if due or (last and progress.done != progress.shown):
            progress.shown = progress.done
            self._say(f"evaluated {progress.done}/{progress.requested}")


def latency_of(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Median and 95th percentile in ms over the records but the first, whose latency is that of a cold model."""
    known = [
        value for entry in entries if entry.prediction and (value := entry.prediction.get("latency_ms")) is not None
    ]
    warm = sorted(known[1:] or known)
    if not warm:
        return None
    return {
        "median": statistics.median(warm),
        "p95": warm[min(len(warm) - 1, int(0.95 * len(warm)))],
        "first": known[0],
        "n": len(warm),
    }


def check_covered(progress: Progress) -> None:
    """Raise Refused if not one record was answered."""
    if not any(entry.error is None for entry in progress.entries):
        reason = next((entry.error for entry in progress.entries if entry.error), "there are none")
        raise Refused(f"not one of {progress.requested} records was answered; the first: {reason}")


def _request(record: DataRecord, date_facts: bool) -> Request:
    return request_of(record, state=with_date_facts(record.state) if date_facts else None)
