"""The grader of one run: takes submissions, grades them one at a time, and gives a verdict when the time is up.

A submission is sealed, written to the store, and only then acknowledged: whatever is killed afterwards, it is graded
once, by this process or the next. Nothing that the agent can reach is believed: neither its files after they were
sealed, nor the copies of scores and clock in its workspace.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from kev import files
from kev.autorl.evaluation import Evaluator
from kev.autorl.judging import Judge, weights_of
from kev.autorl.measuring import Measurer, in_words
from kev.autorl.noise import Baseline
from kev.autorl.opening import inside
from kev.autorl.rejection import Rejected
from kev.autorl.run import Run
from kev.autorl.run_clock import RunClock
from kev.autorl.sealing import Sealed, Sealer
from kev.autorl.store import Store, grader_key
from kev.autorl.submissions import Ledger, Submission
from kev.autorl.views import Views
from kev.autorl.workspace import STORE
from kev.clock import Clock, SystemClock
from kev.errors import NotFound, Refused
from kev.text import visible

CLOCK, VAULT, LOCK = "clock.json", "sealed", "lock"
log = logging.getLogger(__name__)


class Grader:
    """Grades one run. Its methods belong to one event loop; `start` comes first, `stop` last.

    Raises LockHeld where another process grades the run, NotFound or DamagedFile for a base that is none, and
    DamagedFile for a store that the grader did not write.
    """

    def __init__(self, run: Run, evaluator: Evaluator, *, clock: Clock | None = None) -> None:
        self.run = run
        self._clock = clock or SystemClock()
        files.make_directory(run.home, private=True)
        files.make_directory(run.shared, private=True)
        self._lock = files.locked(run.home / LOCK)
        self._lock.__enter__()  # one grader a run; the kernel frees it when we die
        self._store = Store(run.home / STORE, grader_key(run.shared))
        self.ledger = Ledger.replay(self._store.events)
        self._sealer = Sealer(run.workspace.directory, run.home / VAULT, extra=run.extra_files)
        self._views = Views(run.workspace)
        base = weights_of(run.base)
        self._measurer = Measurer(run, evaluator, base)
        self._judge = Judge(run, self._sealer, self._measurer, base)
        self._work: asyncio.Queue[int] = asyncio.Queue()
        self._graded: dict[int, asyncio.Event] = {}
        self._arriving = 0
        self._arrived = asyncio.Event()
        self._accepting, self._writing, self._showing = (asyncio.Lock() for _ in range(3))
        self._measuring, self._finishing = (asyncio.Lock() for _ in range(2))
        self._sealing = asyncio.Semaphore(2)
        self._worker: asyncio.Task[None] | None = None
        self.started = asyncio.Event()
        self.run_clock: RunClock | None = None
        self.current: int | None = None
        """The submission under evaluation."""

    # ------------------------------------------------------------------------------------------ life

    async def start(self) -> None:
        """Take up what an earlier process accepted and did not grade, and the clock if it runs."""
        try:
            self.run_clock = RunClock.open(self.run.home / CLOCK, self._clock)
        except NotFound:
            self.run_clock = None
        for each in self.ledger.waiting:
            self._enqueue(each.number)
        await self._show()
        self._worker = asyncio.create_task(self._grade_all())
        self.started.set()

    async def stop(self) -> None:
        """Stop at once; what was accepted and is not graded is graded by the next process."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._lock.__exit__(None, None, None)

    async def start_clock(self) -> RunClock:
        """Start the run's time, once; a clock that runs goes on."""
        if self.run_clock is None:
            try:
                self.run_clock = RunClock.start(self.run.home / CLOCK, self.run.timeout_s, self._clock)
            except FileExistsError:
                self.run_clock = RunClock.open(self.run.home / CLOCK, self._clock)
            await self._show()
        return self.run_clock

    # ------------------------------------------------------------------------------------------ submissions

    async def accept(self, model_path: str, gpus: Sequence[str] = ()) -> Submission:
        """Seal and note a submission; it is acknowledged from here on. Raises Rejected, Refused or OSError.

        The same content under the same path is the same submission, while it waits and after it was graded.
        """
        if self.run_clock is None:
            raise Rejected("not_allowed", "the run has not begun: its clock stands still")
        if self.run_clock.is_over:
            raise Rejected("time_is_up", "the time of this run is up; what was accepted before is still graded")
        elapsed = self.run_clock.elapsed()
        self._arriving += 1
        try:
            async with self._sealing:
                path, sealed = await asyncio.to_thread(self._seal, model_path)
            async with self._accepting:
                return await self._accept(model_path, path, sealed, elapsed, gpus)
        finally:
            self._arriving -= 1
            self._arrived.set()

    async def _accept(
        self, model_path: str, path: str, sealed: Sealed, elapsed: float, gpus: Sequence[str]
    ) -> Submission:
        if (known := self.ledger.find(path, sealed.sha256)) is not None:
            return known
        self._check_limit(sealed.sha256)
        number = len(self.ledger.submissions) + 1
        local = self._clock.now().astimezone().replace(tzinfo=None)
        facts = {
            "number": number,
            "path": path,
            "said": visible(model_path),
            "sha256": sealed.sha256,
            "timestamp": local.isoformat(timespec="microseconds"),
            "elapsed": elapsed,
            "gpus": list(gpus),
            "remarks": [visible(remark) for remark in sealed.remarks],
        }
        await self._note("accepted", facts)
        if self.run_clock is not None:
            self.run_clock.submitted()
        self._enqueue(number)
        return self.ledger.submissions[number]

    async def graded(self, submission: Submission) -> Submission:
        """`submission`, once it has a grade."""
        if submission.grade is None:
            await self._graded[submission.number].wait()
        return submission

    async def choose(self, number: int) -> Submission:
        """Make a submission the one that the final is graded on. Raises Rejected."""
        found = self.ledger.submissions.get(number)
        if found is None:
            raise Rejected("unknown_submission", f"there is no submission {number}")
        if self.run_clock is None or self.run_clock.is_over:
            raise Rejected("time_is_up", "the time of this run is up; the choice stands")
        if found.grade is None or found.error is not None:
            raise Rejected("not_allowed", f"submission {number} has no score")
        await self._note("chosen", {"number": number})
        return found

    async def set_baseline(self, score: float) -> None:
        """Take a baseline from outside, which only the looser rules allow. Raises Rejected."""
        if self.run.rules == "strict":
            raise Rejected("not_allowed", "the grader measures the base itself; nobody sets its score")
        found = files.as_finite(score)
        if found is None:
            raise Rejected("bad_request", "score: a finite number")
        await self._note("baseline set", {"score": found})
        await self._show()

    # ------------------------------------------------------------------------------------------ base and end

    async def measure_base(self) -> Baseline:
        """What the base scores on the validation items, measured once for a task and a base. Raises Refused."""
        async with self._measuring:
            if self.ledger.baseline is None:
                measured = await self._measurer.measure_base("validation")
                await self._note("baseline", measured.to_json())
                await self._show()
            assert self.ledger.baseline is not None
            return self.ledger.baseline

    async def finish(self) -> Mapping[str, Any]:
        """Ring the bell, grade what came before it, and give the verdict on hidden items, once.

        Raises Refused or DamagedFile where the store is not what this grader wrote: such a run has no verdict.
        """
        (await self.start_clock()).end()
        async with self._finishing:
            await self._finish()
        await self._show()
        assert self.ledger.final is not None
        return self.ledger.final

    async def _finish(self) -> None:
        while self._arriving:
            self._arrived.clear()
            await self._arrived.wait()
        for each in self.ledger.waiting:
            await self.graded(each)
        await self._show()  # notes what was changed in the workspace, so that the final can say so
        self._store.verify()
        if self.ledger.final is None:
            choice = self.ledger.choice()
            model = None if choice is None else self._sealer.open(choice.sha256).directory
            await self._note("final", await self._measurer.final(self.ledger, choice, model))

    # ------------------------------------------------------------------------------------------ the work

    async def _grade_all(self) -> None:
        while True:
            number = self.current = await self._work.get()
            try:
                await self._grade(self.ledger.submissions[number])
            except Exception as error:
                # Nobody may wait for ever. What is not in the store is graded again by the next process.
                log.exception("submission %d could not be recorded", number)
                self.ledger.submissions[number].grade = {"error": in_words(error), "label": "error"}
            finally:
                self.current = None
                self._graded.pop(number).set()

    async def _grade(self, submission: Submission) -> None:
        if self.ledger.baseline is None:
            try:
                await self.measure_base()
            except Refused as error:
                log.warning("%s", error)
                await self._note("baseline failed", {"words": in_words(error)})
        began = self._clock.monotonic()
        grade = await self._judge.grade(submission, self.ledger)
        grade["seconds"] = round(self._clock.monotonic() - began, 3)
        await self._note("graded", {"number": submission.number, **grade})
        await self._show()

    # ------------------------------------------------------------------------------------------ the record

    def _seal(self, model_path: str) -> tuple[str, Sealed]:
        """The path and the sealed copy of a submission. A link to the base is the base."""
        root, base = self.run.workspace.directory, self.run.base.resolve()
        path = inside(root, model_path)
        try:
            return str(path), self._sealer.seal(model_path)
        except Rejected as error:
            if error.code != "link" or (root / path).resolve() != base:
                raise
            of_base = Sealer(base.parent, self.run.home / VAULT, extra=self.run.extra_files)
            return str(path), of_base.seal(base.name)

    def _check_limit(self, sha256: str) -> None:
        if self.run.rules == "compat" or any(each.sha256 == sha256 for each in self.ledger.submissions.values()):
            return
        most = self.run.most_submissions
        if self.ledger.used() >= most or len(self.ledger.submissions) >= 5 * most:
            raise Rejected("no_submissions_left", f"all {most} submissions of this run are used; choose one of them")

    def _enqueue(self, number: int) -> None:
        self._graded[number] = asyncio.Event()
        self._work.put_nowait(number)

    async def _note(self, kind: str, facts: dict[str, Any]) -> None:
        async with self._writing:
            self.ledger.apply(await asyncio.to_thread(self._store.append, kind, facts))

    async def _show(self) -> None:
        if self.run_clock is None:
            return
        async with self._showing:
            changed = await asyncio.to_thread(self._views.write, self.ledger, self.run_clock)
        for words in changed:
            log.warning("%s", words)
            await self._note("tampered", {"words": words, "elapsed": self.run_clock.elapsed()})
