"""One thread that scores what is waiting, as one batch: requests that come together are answered together."""

import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from kev.predictors.local import Scorer

BATCH = 64
WAITING = 256


class Busy(Exception):
    """As many requests as may wait are waiting."""


class Stopped(Exception):
    """The engine takes no more requests."""


class ScoringFailed(Exception):
    """The model could not score a request, not even alone."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Logits for each question and option, and the milliseconds of the pass they came from."""

    logits: list[list[float]]
    latency_ms: float


@dataclass(frozen=True, slots=True)
class _Job:
    encoded: Any
    future: "Future[Scored]"


class Engine:
    """Scores encoded requests in a thread of its own. `submit` may be called from any thread."""

    def __init__(self, scorer: Scorer, *, batch: int = BATCH, waiting: int = WAITING) -> None:
        self._scorer = scorer
        self._batch = batch
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._most_waiting = waiting
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scoring", daemon=True)
        self.batches = 0
        self.requests = 0

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests that no pass has taken up yet."""
        return self._jobs.qsize()

    def submit(self, encoded: Any) -> "Future[Scored]":
        """Score `encoded`. Raises Busy or Stopped; the future raises ScoringFailed or Stopped."""
        if self.stopped.is_set():
            raise Stopped
        if self._jobs.qsize() >= self._most_waiting:
            raise Busy
        job = _Job(encoded, Future())
        self._jobs.put(job)
        return job.future

    def stop(self) -> None:
        """Take no more requests, finish the pass under way, and turn away what still waits."""
        self.stopped.set()
        self._jobs.put(None)
        self._thread.join()
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None and job.future.set_running_or_notify_cancel():
                job.future.set_exception(Stopped())

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None and not self.stopped.is_set():
            # A caller that hung up while it waited has cancelled its future, and is not scored.
            jobs = [each for each in [job, *self._more()] if each.future.set_running_or_notify_cancel()]
            if jobs:
                self._score(jobs)
        if job is not None and job.future.set_running_or_notify_cancel():
            job.future.set_exception(Stopped())

    def _more(self) -> list[_Job]:
        found: list[_Job] = []
        while len(found) < self._batch - 1:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            found.append(job)
        return found

    def _score(self, jobs: Sequence[_Job]) -> None:
        began = time.perf_counter()
        try:
            scored = self._scorer.score([job.encoded for job in jobs])
        except Exception as error:  # out of memory, mostly; whatever it is, the thread goes on
            self._fail(jobs, error)
            return
        elapsed = (time.perf_counter() - began) * 1000
        self.batches += 1
        self.requests += len(jobs)
        for job, logits in zip(jobs, scored, strict=True):
            job.future.set_result(Scored(logits, elapsed))

    def _fail(self, jobs: Sequence[_Job], error: Exception) -> None:
        if len(jobs) == 1:
            failure = ScoringFailed(type(error).__name__)
            failure.__cause__ = error
            jobs[0].future.set_exception(failure)
            return
        # One request too large for the batch must not cost the others their answers.
        for job in jobs:
            self._score([job])
