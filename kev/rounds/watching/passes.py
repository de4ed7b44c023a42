"""One pass over a round: ask how everything stands, decide, and do what follows.

Everything that decides is on disk before it is acted on, so a watcher that dies anywhere is continued by the next.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from kev import control
from kev.compute.errors import RemoteError, Throttled
from kev.compute.lease_watch import LeaseWatch
from kev.errors import DamagedFile, KevError, LockHeld, NotFound, Refused
from kev.gate import AlreadyStarted
from kev.ledger.book import NotRecorded
from kev.ledger.units import Attempt, Unit
from kev.records.control import Control
from kev.records.event import EventSeverity
from kev.records.ledger import LedgerEvent
from kev.rounds.engine import Engine
from kev.rounds.pull import names_at_home, pull_unit
from kev.rounds.resume import continue_trial, look_at_lease
from kev.rounds.specs import LoadedSpec
from kev.rounds.watching import decide
from kev.rounds.watching.arms import Arms
from kev.rounds.watching.asking import Silence, poll, project, settle_unanswered, sweep
from kev.rounds.watching.blends import Blends
from kev.rounds.watching.follow import Follower
from kev.rounds.watching.rescores import Rescores

UNSTARTED_S = 900.0
"""A unit that was reserved and not started for so long lost its launcher; the watcher starts it."""

BLOCKED_S = 1800.0
"""What is refused for so long is put on record and skipped: nothing waits for a person."""

MAX_STEPS = 4


@dataclass
class Watch:
    """What a watcher knows besides the ledger. All of it may be lost: it only saves asking again."""

    engine: Engine
    loaded: LoadedSpec
    stagger_s: float = 60.0
    continues: bool = True
    """Whether a trial that was cut off is continued; if not, it waits for a person to do that."""
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
    held: bool = False
    """Whether the engine had paused the session on the last pass."""

    def __post_init__(self) -> None:
        self.blends = Blends(self.engine, self.loaded)
        self.arms = Arms(self.engine, self.loaded)
        self.rescores = Rescores(self.engine, self.loaded)
        self.follower = Follower(self.engine)

    def units(self) -> list[Unit]:
        """The units of the round, and what asking for sources left behind."""
        number, session = self.loaded.spec.round, self.engine.provenance.session
        return [
            unit
            for unit in self.engine.ledger.read().by_id.values()
            if unit.order.round == number
            or unit.id in self.blends.ids
            or self.rescores.owns(unit)
            or (unit.order.kind == "sources" and unit.order.session == session)
        ]

    async def run(self) -> None:
        """One pass. Raises only what makes going on pointless: a damaged ledger, a disk that takes nothing."""
        mode = control.read_control(self.engine.gate.state)
        self.retry_after_s = 0.0
        await sweep(self)
        for unit in self.units():
            live = unit.live
            if live is not None and live.pending:
                await settle_unanswered(self, unit, live)
        await poll(self)
        if mode.mode == "hard":
            return
        self._break_crash_loop(mode.mode, float(mode.at))
        if self.held and mode.mode == "running":
            self.blocked.clear()  # what was held back has half an hour of its own
        self.held = mode.by_engine
        for unit in self.units():
            if not unit.settled and unit.live is None:
                await self._step(unit, mode)
        if mode.mode == "running":
            await self.rescores.launch(self)
            await self.blends.launch(self)
            await self.arms.launch(self)
        elif mode.by_engine:
            self.rescores.hold(self, mode.reason)
            self.arms.hold(self, mode.reason)
        await self.follower.follow(self.units())
        await project(self)

    async def _step(self, unit: Unit, mode: Control) -> None:
        """Take one unit as far as it goes now."""
        pulled, lease = False, None
        for _ in range(MAX_STEPS):
            home = names_at_home(self.engine.root, unit.order)
            action = decide.next_step(unit, home=home, pulled=pulled, lease=lease)
            try:
                match action:
                    case decide.Settle(outcome, text):
                        self.settle(unit, outcome, text)
                        return
                    case decide.Pull():
                        pulled = True
                        with suppress(NotFound):  # it wrote nothing
                            await pull_unit(self.engine, unit)
                    case decide.Look():
                        watch = self.leases.setdefault(unit.id, LeaseWatch(self.engine.clock))
                        lease = await look_at_lease(self.engine, unit, watch)
                        if not lease.may_continue:
                            self.show_wait(unit.id, f"to be continued: {lease.reason(self.engine.clock.now())}")
                            return
                    case decide.Continue() if not self.continues:
                        self.show_wait(unit.id, "waits to be continued by a person, with `resume`")
                        return
                    case decide.Continue(evidence):
                        call = await continue_trial(self.engine, unit, evidence)
                        self.engine.say(f"{unit.id}: attempt {len(unit.counted)} of {unit.order.attempts} is {call}")
                        self._clear(unit.id)
                        return
                    case decide.Start():
                        if mode.by_engine:
                            raise Refused(f"{unit.id}: nothing new is started: {mode.reason}")
                        if mode.mode == "running" and self.engine.now() - unit.wanted_at >= UNSTARTED_S:
                            await self.start(unit.id)
                        return
                    case _:
                        return
            except NotRecorded:
                raise
            except KevError as error:
                if isinstance(error, DamagedFile) and error.path == self.engine.ledger.path:
                    raise
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
        severity: EventSeverity = "info" if outcome in ("done", "same", "silent") else "warning"
        self.engine.gate.note(outcome, text or outcome, subject=unit.id, severity=severity)
        self.engine.say(f"{unit.id}: {outcome}{f' ({text})' if text else ''}")

    def _hindered(self, unit: Unit, error: KevError) -> None:
        """Something that was to be done could not be: wait, or after BLOCKED_S of refusals skip it."""
        if isinstance(error, RemoteError):
            self.show_wait(unit.id, str(error))
            if isinstance(error, Throttled):
                self.retry_after_s = max(self.retry_after_s, error.retry_after_s or 0.0)
            return
        self.show_wait(unit.id, str(error))
        if isinstance(error, DamagedFile):
            self.report_damage(error)
        elif not isinstance(error, Refused) or isinstance(error, AlreadyStarted):
            return
        if self.is_blocked(unit.id, str(error)) and unit.live is None:
            self.settle(unit, "blocked", str(error))

    @contextmanager
    def hindrances(self, name: str) -> Iterator[None]:
        """What hinders the start of an arm's reads, or of a blend, is shown, and counted where it is a refusal."""
        try:
            yield
        except RemoteError as error:
            self.waits[name] = str(error)
        except (Refused, LockHeld, DamagedFile) as error:
            if isinstance(error, DamagedFile):
                if error.path == self.engine.ledger.path:
                    raise
                self.report_damage(error)
            self.show_wait(name, str(error))
            if not isinstance(error, LockHeld):
                self.is_blocked(name, str(error))
        else:
            self.blocked.pop(name, None)

    def is_blocked(self, name: str, reason: str) -> bool:
        """Whether `name` has been refused for so long that it is skipped. A person's pause is no refusal."""
        mode = control.read_control(self.engine.gate.state)
        if mode.mode != "running" and not mode.by_engine:
            self.blocked.pop(name, None)
            return False
        now = self.engine.clock.monotonic()
        since, _ = self.blocked.setdefault(name, (now, reason))
        return now - since >= BLOCKED_S

    def report_damage(self, error: DamagedFile) -> None:
        """A file cannot be believed: an incident in the journal, once; nothing is started on it."""
        text = str(error)
        if text not in self.warned:
            self.warned.add(text)
            self.engine.gate.note("damaged", f"{text}; nothing is started on it", subject=error.path.name,
                                  severity="critical")  # fmt: skip
            self.engine.say(f"!!! {text}; nothing is started on it, and the rest is watched on")

    def end(self, unit: Unit, attempt: Attempt, ended: decide.Ended) -> None:
        """Put on record how an attempt ended."""
        self.record(unit, attempt, "ended", outcome=ended.outcome, text=ended.text)
        severity: EventSeverity = "info" if ended.outcome == "succeeded" else "warning"
        self.engine.gate.note("ended", f"attempt {len(unit.counted)}: {ended.outcome} {ended.text}".rstrip(),
                              subject=unit.id, severity=severity)  # fmt: skip
        self._clear(unit.id)

    def record(
        self, unit: Unit, attempt: Attempt, event: str, *, outcome: str | None = None, call: str | None = None,
        text: str = "",
    ) -> None:  # fmt: skip
        """Put on record what became of an attempt, unless another process was first."""
        with self.engine.ledger.writing() as book:
            known = book.units.by_nonce.get(attempt.nonce)
            if known is None or not known[1].live or (event != "ended" and not known[1].pending):
                return
            book.add(LedgerEvent(event=event, at=self.engine.now(), unit=unit.id, nonce=attempt.nonce, call=call,
                                 outcome=outcome, text=text or None))  # fmt: skip

    def _break_crash_loop(self, mode: str, since: float) -> None:
        reason = decide.round_crash_loop(self.units(), since) if mode == "running" else None
        if reason is not None:
            self.engine.gate.pause(reason)

    def show_wait(self, unit_id: str, text: str) -> None:
        """What a unit waits for, said when it changes; empty for nothing."""
        if text and self.waits.get(unit_id) != text:
            self.engine.say(f"{unit_id}: {text}")
        if text:
            self.waits[unit_id] = text
        else:
            self.waits.pop(unit_id, None)

    def _clear(self, unit_id: str) -> None:
        for table in (self.waits, self.blocked, self.silent):
            table.pop(unit_id, None)
