"""One pass over a round: ask how everything stands, decide, and do what follows.

Everything that decides is on disk before it is acted on, so a watcher that dies anywhere is continued by the next.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from kev import control, files
from kev.compute.errors import RemoteError, Throttled
from kev.compute.lease_watch import LeaseWatch
from kev.compute.protocol import CallRef, CallState, Phase
from kev.errors import KevError, LockHeld, Refused
from kev.gate import AlreadyStarted
from kev.ledger.book import holding
from kev.ledger.units import Attempt, Unit
from kev.records.ledger import LedgerEvent
from kev.rounds.engine import Engine
from kev.rounds.pull import pull_unit
from kev.rounds.resume import continue_trial, look_at_lease
from kev.rounds.specs import LoadedSpec
from kev.rounds.watching import decide, progress
from kev.rounds.watching.arms import Arms
from kev.rounds.watching.follow import Follower
from kev.rounds.watching.pending import Abandon, Adopt, settle_pending
from kev.rounds.watching.sweep import orphans, unknown_calls
from kev.session import lock_path

UNSTARTED_S = 900.0
"""A unit that was reserved and not started for so long lost its launcher; the watcher starts it."""

BLOCKED_S = 1800.0
"""What is refused for so long is put on record and skipped: nothing waits for a person."""

SWEEP_S = 900.0
PROGRESS_S = 600.0
LOG_LINES = 400
MAX_STEPS = 4


@dataclass
class Silence:
    """That a call could not be asked about: since when, how often in a row, and whether it was only throttled."""

    since: float
    times: int = 0
    throttled: bool = False
    text: str = ""


@dataclass
class Watch:
    """What a watcher knows besides the ledger. All of it may be lost: it only saves asking again."""

    engine: Engine
    loaded: LoadedSpec
    stagger_s: float = 60.0
    silent: dict[str, Silence] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)
    """Unit -> what it waits for, as shown."""
    leases: dict[str, LeaseWatch] = field(default_factory=dict)
    blocked: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Unit or arm -> since when (monotonic) it is refused, and why."""
    first_seen: dict[str, float] = field(default_factory=dict)
    """Nonce of a pending attempt -> since when nobody can be sending its spawn any more (monotonic)."""
    warned: set[str] = field(default_factory=set)
    looked: dict[str, float] = field(default_factory=dict)
    strays: dict[str, str] = field(default_factory=dict)
    """Orphans: call -> function."""
    retry_after_s: float = 0.0
    shown: int = -1
    """Size of the ledger when its views were last brought up to it."""
    swept: float | None = None
    last_start: float | None = None

    def __post_init__(self) -> None:
        self.arms = Arms(self.engine, self.loaded)
        self.follower = Follower(self.engine)

    def units(self) -> list[Unit]:
        """The units of the round, and what asking for sources left behind."""
        number, session = self.loaded.spec.round, self.engine.provenance.session
        return [
            unit
            for unit in self.engine.ledger.read().by_id.values()
            if unit.order.round == number or (unit.order.kind == "sources" and unit.order.session == session)
        ]

    async def run(self) -> None:
        """One pass. Raises only what makes going on pointless: a damaged ledger, a disk that takes nothing."""
        mode = control.read_control(self.engine.gate.state)
        self.retry_after_s = 0.0
        await self._sweep()
        for unit in self.units():
            live = unit.live
            if live is not None and live.pending:
                await self._settle_pending(unit, live)
        await self._poll()
        if mode.mode == "hard":
            return
        self._break_crash_loop(mode.mode, float(mode.at))
        for unit in self.units():
            if not unit.settled and unit.live is None:
                await self._step(unit, may_start=mode.mode == "running")
        if mode.mode == "running":
            await self.arms.launch(self)
        await self.follower.follow(self.units())
        await self._project()

    # ------------------------------------------------------------------------------------------------ asking

    async def _poll(self) -> None:
        asked = [(unit, unit.live) for unit in self.units() if unit.live is not None and unit.live.call is not None]
        answers = await self.engine.gather([self._ask(unit, attempt) for unit, attempt in asked if attempt is not None])
        for (unit, attempt), state in zip(asked, answers, strict=True):
            if state is None or attempt is None:
                continue
            action = decide.end_of(unit, attempt, state, self.engine.now())
            if isinstance(action, decide.Ended):
                self._end(unit, attempt, action)
            elif isinstance(action, decide.Cancel):
                await self._cancel_again(unit, attempt)
            elif isinstance(action, decide.Wait):
                self._show_wait(unit.id, action.text)

    async def _ask(self, unit: Unit, attempt: Attempt) -> CallState | None:
        ref = CallRef(attempt.call or "", unit.order.function, unit.id)
        try:
            state = await self.engine.compute.poll(ref)
        except RemoteError as error:
            self._not_heard(unit.id, error)
            return None
        if self.silent.pop(unit.id, None) is not None:
            self.engine.gate.note("reachable", "answers again", subject=unit.id)
        return state

    def _not_heard(self, unit_id: str, error: RemoteError) -> None:
        silence = self.silent.get(unit_id)
        if silence is None:
            silence = self.silent[unit_id] = Silence(self.engine.now())
            self.engine.gate.note("unreachable", str(error), subject=unit_id, severity="warning")
            self.engine.say(f"{unit_id}: cannot be asked, and is left as it is ({error})")
        silence.text, silence.throttled = str(error), isinstance(error, Throttled)
        if isinstance(error, Throttled):
            self.retry_after_s = max(self.retry_after_s, error.retry_after_s or 0.0)
        else:
            silence.times += 1

    async def _cancel_again(self, unit: Unit, attempt: Attempt) -> None:
        try:
            await self.engine.compute.cancel(CallRef(attempt.call or ""), hard=True)
        except RemoteError as error:
            self._not_heard(unit.id, error)
        self._show_wait(unit.id, f"stopping, cancelled by {unit.cancelled_by}")

    async def _settle_pending(self, unit: Unit, attempt: Attempt) -> None:
        engine = self.engine
        # A spawn is sent under the session's lock: once that was free, nothing more is sent for this attempt.
        with suppress(LockHeld), holding(lock_path(engine.gate.state)):
            self.first_seen.setdefault(attempt.nonce, engine.clock.monotonic())
        now = engine.clock.monotonic()
        lease = None
        if unit.order.lease is not None:
            try:
                lease = (await look_at_lease(engine, unit, LeaseWatch(engine.clock))).holder
            except RemoteError:
                self._show_wait(unit.id, "its spawn was not answered, and its lease cannot be read")
                return
        unknown = await unknown_calls(engine, unit.order.function, attempt.at, engine.ledger.read())
        answers = {}
        for row in unknown or () if unit.order.kind in ("read", "locked") else ():
            if row.phase is Phase.SUCCEEDED:
                try:
                    answers[row.id] = (await engine.compute.poll(CallRef(row.id))).result
                except RemoteError:
                    continue
        found = settle_pending(
            unit, attempt, silent_s=now - self.first_seen.get(attempt.nonce, now), lease=lease, unknown=unknown,
            answers=answers,
        )  # fmt: skip
        if isinstance(found, Adopt):
            self._record(unit, attempt, "call", call=found.call, text=f"adopted: {found.how}")
            engine.gate.note("adopted", f"{found.call}: {found.how}", subject=unit.id)
            engine.say(f"{unit.id}: is {found.call} ({found.how})")
        elif isinstance(found, Abandon):
            self._record(unit, attempt, "abandoned", text=found.text)
            engine.gate.note("ghost", f"attempt {len(unit.counted)} counts: {found.text}", subject=unit.id,
                             severity="warning")  # fmt: skip
            engine.say(f"{unit.id}: attempt {len(unit.counted)} given up, and counted: {found.text}")
        else:
            self._show_wait(unit.id, found.text)

    async def _sweep(self) -> None:
        engine = self.engine
        if self.swept is not None and engine.clock.monotonic() - self.swept < SWEEP_S:
            return
        units = self.units()
        since = min((attempt.at for unit in units for attempt in unit.attempts), default=engine.now())
        pending = {unit.order.function for unit in units if unit.live is not None and unit.live.pending}
        functions = sorted({unit.order.function for unit in units if unit.order.kind != "sources"} - pending)
        found = await orphans(engine, since, functions)
        if found is None:
            return
        self.swept = engine.clock.monotonic()
        for call, function in found.items():
            if call not in self.strays:
                engine.gate.note("orphan", f"{function} is alive and nothing here started it", subject=call,
                                 severity="critical")  # fmt: skip
                engine.say(f"!!! {call} ({function}) is alive and nothing here started it; "
                           f"`cancel --orphan {call}` ends it")  # fmt: skip
        self.strays = found

    # ------------------------------------------------------------------------------------------------ doing

    async def _step(self, unit: Unit, *, may_start: bool) -> None:
        """Take one unit as far as it goes now."""
        pulled, lease = False, None
        for _ in range(MAX_STEPS):
            home = frozenset(files.list_names(self.engine.root / unit.order.local))
            action = decide.next_step(unit, home=home, pulled=pulled, lease=lease)
            try:
                match action:
                    case decide.Settle(outcome, text):
                        self.settle(unit, outcome, text)
                        return
                    case decide.Pull():
                        await pull_unit(self.engine, unit)
                        pulled = True
                    case decide.Look():
                        watch = self.leases.setdefault(unit.id, LeaseWatch(self.engine.clock))
                        lease = await look_at_lease(self.engine, unit, watch)
                        if not lease.may_continue:
                            self._show_wait(unit.id, f"to be continued: {lease.reason(self.engine.clock.now())}")
                            return
                    case decide.Continue(evidence):
                        call = await continue_trial(self.engine, unit, evidence)
                        self.engine.say(f"{unit.id}: attempt {len(unit.counted)} of {unit.order.attempts} is {call}")
                        self._clear(unit.id)
                        return
                    case decide.Start():
                        if may_start and self.engine.now() - unit.wanted_at >= UNSTARTED_S:
                            await self.start(unit.id)
                        return
                    case _:
                        return
            except (Refused, LockHeld, RemoteError) as error:
                self._hindered(unit, error)
                return

    async def start(self, unit_id: str) -> None:
        """Spawn the first attempt of a reserved unit, `stagger_s` after the last one. Raises as `Gate.start` does."""
        clock = self.engine.clock
        if self.last_start is not None:
            await self.engine.gate.sleep(max(0.0, self.last_start + self.stagger_s - clock.monotonic()))
        try:
            ref = await self.engine.gate.start(unit_id)
        except AlreadyStarted:
            return
        self.last_start = clock.monotonic()
        self.engine.say(f"{unit_id}: {ref.id}")
        self._clear(unit_id)

    def settle(self, unit: Unit, outcome: str, text: str) -> None:
        """Put on record that nothing more is spent on a unit."""
        with self.engine.ledger.writing() as book:
            if book.units.by_id[unit.id].settled or book.units.by_id[unit.id].live is not None:
                return
            book.add(LedgerEvent(event="settled", at=self.engine.now(), unit=unit.id, outcome=outcome,
                                 text=text or None))  # fmt: skip
        self._clear(unit.id)
        severity = "info" if outcome in ("done", "same", "silent") else "warning"
        self.engine.gate.note(
            outcome, text or outcome, subject=unit.id, severity="warning" if severity != "info" else "info"
        )
        self.engine.say(f"{unit.id}: {outcome}{f' ({text})' if text else ''}")

    def _hindered(self, unit: Unit, error: KevError) -> None:
        """Something that was to be done could not be: wait, or after BLOCKED_S of refusals skip it."""
        if isinstance(error, RemoteError):
            self._show_wait(unit.id, str(error))
            if isinstance(error, Throttled):
                self.retry_after_s = max(self.retry_after_s, error.retry_after_s or 0.0)
            return
        self._show_wait(unit.id, str(error))
        if isinstance(error, AlreadyStarted | LockHeld) or not self.is_blocked(unit.id, str(error)):
            return
        if unit.live is None:
            self.settle(unit, "blocked", str(error))

    def is_blocked(self, name: str, reason: str) -> bool:
        """Whether `name` has been refused for so long that it is skipped; notes the first refusal."""
        if control.read_control(self.engine.gate.state).mode != "running":
            self.blocked.pop(name, None)
            return False
        now = self.engine.clock.monotonic()
        since, _ = self.blocked.setdefault(name, (now, reason))
        return now - since >= BLOCKED_S

    def _end(self, unit: Unit, attempt: Attempt, ended: decide.Ended) -> None:
        self._record(unit, attempt, "ended", outcome=ended.outcome, text=ended.text)
        severity = "info" if ended.outcome == "succeeded" else "warning"
        self.engine.gate.note("ended", f"attempt {len(unit.counted)}: {ended.outcome} {ended.text}".rstrip(),
                              subject=unit.id, severity="info" if severity == "info" else "warning")  # fmt: skip
        self._clear(unit.id)

    def _record(
        self, unit: Unit, attempt: Attempt, event: str, *, outcome: str | None = None, call: str | None = None,
        text: str = "",
    ) -> None:  # fmt: skip
        with self.engine.ledger.writing() as book:
            known = book.units.by_nonce.get(attempt.nonce)
            if known is None or not known[1].live or (event != "ended" and not known[1].pending):
                return  # another process was first
            book.add(LedgerEvent(event=event, at=self.engine.now(), unit=unit.id, nonce=attempt.nonce, call=call,
                                 outcome=outcome, text=text or None))  # fmt: skip

    def _break_crash_loop(self, mode: str, since: float) -> None:
        reason = decide.round_crash_loop(self.units(), since) if mode == "running" else None
        if reason is not None:
            self.engine.gate.pause(reason)

    async def _project(self) -> None:
        clock = self.engine.clock
        for unit in self.units():
            live = unit.live
            if unit.order.kind != "trial" or live is None or live.call is None or live.nonce in self.warned:
                continue
            if clock.monotonic() - self.looked.get(live.nonce, -PROGRESS_S) < PROGRESS_S:
                continue
            self.looked[live.nonce] = clock.monotonic()
            try:
                lines = await self.engine.compute.log_tail(CallRef(live.call), LOG_LINES)
            except RemoteError:
                continue
            steps = progress.steps_of((line.at.timestamp(), line.text) for line in lines)
            run_for = self.engine.now() - live.at
            text = progress.warn_of_timeout(steps, run_for, unit.order.timeout, unit.attempts_left)
            if text is not None:
                self.warned.add(live.nonce)
                self.engine.gate.note("projection", text, subject=unit.id, severity="warning")
                self.engine.say(f"!!! {unit.id}: {text}")

    def _show_wait(self, unit_id: str, text: str) -> None:
        if text and self.waits.get(unit_id) != text:
            self.engine.say(f"{unit_id}: {text}")
        if text:
            self.waits[unit_id] = text
        else:
            self.waits.pop(unit_id, None)

    def _clear(self, unit_id: str) -> None:
        for table in (self.waits, self.blocked, self.silent):
            table.pop(unit_id, None)
