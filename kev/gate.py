"""The money gate: the only door to a provider's spawn.

Whatever costs money passes here twice. `reserve` admits units under the spend rule and puts what they may cost on
record; `start` spawns one attempt at a reserved unit. Both hold the session's lock from the reading of the meter until
their decision is on disk, and `start` until the spawn is answered:

    spent since the baseline, over all billing cycles
    + the most that everything unsettled can still cost
    + the bound of what is asked for
    >= authorization - reserve                              refuses
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import control, files
from kev.budget import Account, dollars
from kev.clock import Clock
from kev.commitments import READ_SUFFIX, Sum, commitments, spawn_records
from kev.compute.errors import RemoteError, SpendLimitReached
from kev.compute.protocol import CallRef, Compute
from kev.errors import DamagedFile, KevError, LockHeld, NotFound, Refused
from kev.ledger.book import Ledger, NotRecorded, holding
from kev.ledger.places import parts_of
from kev.ledger.units import Unit, Units
from kev.ledger.views import with_work, write_views
from kev.meter import FRESH_S, Meter, read_meter
from kev.records.control import ENGINE
from kev.records.event import EventSeverity
from kev.records.ledger import LedgerEvent, Order
from kev.session import append_event, change_locked_state, events_path, lock_path, read_session, session_name, utc_text
from kev.spelling import on_any_disk

LOCK_WAIT_S = 120.0
"""Another launch holds the session's lock for as long as the meter takes to answer."""


Decide = Callable[[str, Decimal, Units, Sequence[str]], str]
"""Says why `what` may be launched at `bound`, or raises Refused; `own` are the units that the bound is of."""


class AlreadyStarted(Refused):
    """The unit is running, has run as often as it may, or is over: there is nothing to start."""


def check_alone(units: Units, unit: Unit) -> None:
    """Raises Refused while another unit that writes to the same place may be running."""
    places = {remote for remote, _ in parts_of(unit.order)}
    busy = next((other for other in units.open() if other is not unit and other.live is not None
                 and not places.isdisjoint(remote for remote, _ in parts_of(other.order))), None)  # fmt: skip
    if busy is not None:
        raise Refused(f"{unit.id}: {busy.id} works in the same place and may be running; wait for its end")


@dataclass
class Gate:
    """The gate of one session, over one runs/ directory."""

    state: Path
    """The session's state file."""
    ledger: Ledger
    compute: Compute
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    say: Callable[[str], None] = print
    who: str = ""
    new_nonce: Callable[[], str] = field(default=lambda: secrets.token_hex(16))

    @property
    def session(self) -> str | None:
        """The session that pays; None where there is none."""
        return session_name(self.state)

    async def read_meter(self, *, young_s: float = FRESH_S) -> Meter:
        """A reading for the record, at most `young_s` old. Raises Refused where the spend is unknown."""
        async with self.locked():
            return await self._meter(self.ledger.read(), young_s)

    async def preview(self, what: str, wanted: Sequence[tuple[str, Order]]) -> Sum:
        """The sum that `reserve` would hold `wanted` against. Takes a reading, and admits nothing."""
        async with self.locked():
            units = self.ledger.read()
            return self._sum(what, _bound(units, wanted), units, await self._meter(units), [name for name, _ in wanted])

    async def reserve(self, what: str, wanted: Sequence[tuple[str, Order]]) -> list[str]:
        """Admit those of `wanted`, (unit id, order), that are not on record yet, all of them or none.

        Returns their ids. Raises Refused with every figure, LockHeld, DamagedFile or NotRecorded.
        """
        control.check_may_start(self.state, what)
        async with self.locked():
            decide = await self._prepare(self.ledger.read())
            with self.ledger.writing() as book:
                new = [(name, order) for name, order in wanted if _is_new(book.units, name)]
                if not new:
                    return []
                self._check_names(book.units, new)
                words = decide(what, _bound(book.units, new), book.units, [name for name, _ in new])
                book.add(LedgerEvent(event="wanted", at=self._now(), orders=dict(new), who=self.who))
            self._show_work()
        self.note("admitted", words, subject=what)
        return [name for name, _ in new]

    async def extend(self, unit_id: str) -> None:
        """Allow a unit one more attempt than it was admitted for, under the same rule. Raises as `reserve` does."""
        async with self.locked():
            decide = await self._prepare(self.ledger.read())
            with self.ledger.writing() as book:
                unit = book.units.by_id.get(unit_id)
                if unit is None:
                    raise NotFound(f"{unit_id}: is not in the ledger")
                if unit.live is not None:
                    raise AlreadyStarted(f"{unit_id}: has an attempt that may be running ({unit.live.call})")
                decide(unit_id, unit.order.attempt_usd, book.units, [])
                book.add(LedgerEvent(event="extended", at=self._now(), unit=unit_id, who=self.who))
        self.note(
            "extended", "one more attempt, beyond the bound of its admission", subject=unit_id, severity="warning"
        )

    async def start(self, unit_id: str, **extra: Any) -> CallRef:
        """Spawn one attempt at a reserved unit; `extra` goes into the payload of this attempt only.

        Raises AlreadyStarted, Refused, LockHeld, DamagedFile or NotRecorded before anything was spawned, and a
        RemoteError where the spawn failed: with `may_have_happened` the attempt stays pending.
        """
        async with self.locked():
            decide = await self._prepare(self.ledger.read())
            with self.ledger.writing() as book:
                unit = self._startable(book.units, unit_id)
                bound = unit.order.attempt_usd * unit.attempts_left
                decide(unit_id, bound, book.units, [unit_id])
                nonce, number = self.new_nonce(), len(unit.counted) + 1
                book.add(LedgerEvent(event="intent", at=self._now(), unit=unit_id, nonce=nonce, who=self.who))
                order = unit.order
            self.show(order.name)  # whoever reads along sees the intent before the call exists
            # Still under the lock: whoever gives up an attempt that was never answered takes it too, and so never
            # does while the request may yet be sent, however long this process was stopped in between.
            return await self._spawn(unit_id, order, nonce, number, extra)

    async def _spawn(self, unit_id: str, order: Order, nonce: str, number: int, extra: dict[str, Any]) -> CallRef:
        payload = {**order.payload, **extra}
        if order.kind == "trial":
            payload |= {"nonce": nonce, "attempt": number}
        run_id = f"{unit_id}#{number}"
        try:
            ref = await self.compute.spawn(
                order.function, payload, run_id=run_id, gpu=order.gpu, timeout_s=order.timeout,
                memory_mb=order.memory_mb,
            )  # fmt: skip
        except KevError as error:
            if isinstance(error, RemoteError) and error.may_have_happened:
                self.note("pending", f"whether it started is not known: {error}", subject=unit_id, severity="warning")
                raise
            self.settle_attempt(unit_id, nonce, "withdrawn", text=str(error))
            self.show(order.name)
            self.note("refused", f"not started: {error}", subject=unit_id, severity="warning")
            if isinstance(error, SpendLimitReached):
                self.pause(str(error), spend_limit=True)
            raise
        with self.ledger.writing() as book:
            book.add(LedgerEvent(event="call", at=self._now(), unit=unit_id, nonce=nonce, call=ref.id))
        self.show(order.name)
        kind = "launch" if number == 1 else "continuation"
        self.note(kind, f"attempt {number} of {order.attempts}: {ref.id}", subject=unit_id)
        return ref

    def settle_attempt(
        self, unit_id: str, nonce: str, event: str, *, text: str = "", outcome: str | None = None,
        call: str | None = None,
    ) -> None:  # fmt: skip
        """Put on record what became of an attempt."""
        with self.ledger.writing() as book:
            book.add(LedgerEvent(event=event, at=self._now(), unit=unit_id, nonce=nonce, outcome=outcome,
                                 call=call, text=text or None))  # fmt: skip

    def settle(self, unit_id: str, outcome: str, text: str = "") -> None:
        """Put on record that nothing more is spent on a unit."""
        with self.ledger.writing() as book:
            book.add(LedgerEvent(event="settled", at=self._now(), unit=unit_id, outcome=outcome, text=text or None))

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Hold the session's lock. Raises LockHeld if it is not free within LOCK_WAIT_S, or NotRecorded."""
        waited = 0.0
        while True:
            try:
                manager = holding(lock_path(self.state))
                manager.__enter__()
                break
            except LockHeld:
                if waited >= LOCK_WAIT_S:
                    raise
            waited += 1.0
            await self.sleep(1.0)
        try:
            yield
        finally:
            manager.__exit__(None, None, None)

    def note(self, kind: str, text: str, *, subject: str = "", severity: EventSeverity = "info") -> None:
        """Write to the session's journal. What was decided holds even where the disk takes no more lines."""
        with suppress(OSError):
            append_event(
                events_path(self.state), self.clock.now(), kind, text, severity=severity, subject=subject,
                who=self.who or None,
            )  # fmt: skip

    def show(self, name: str) -> None:
        """Bring the record of a study or read up to the ledger; that it cannot be written is said and stops nothing."""
        try:
            write_views(self.ledger.runs, self.ledger.read(), {name})
        except (NotRecorded, DamagedFile) as error:
            self.say(f"!!! {error}")

    async def _prepare(self, units: Units) -> Decide:
        """What decides, once everything that takes time to know is known."""
        meter = await self._meter(units)

        def decide(what: str, bound: Decimal, units: Units, own: Sequence[str]) -> str:
            total = self._sum(what, bound, units, meter, own)
            self._decide(total)
            return f"bound {dollars(total.bound)}, headroom was {dollars(total.account.headroom or Decimal(0))}"

        return decide

    def _show_work(self) -> None:
        """Bring the session's list of its work up to the ledger, under the session's lock."""
        with suppress(OSError):  # a view of the ledger, which is on disk; the next one to write it brings it up
            change_locked_state(self.state, lambda old: with_work(old, self.ledger.read()))

    async def _meter(self, units: Units, young_s: float = FRESH_S) -> Meter:
        try:
            meter = await read_meter(self.state, self.compute, self.clock, units, young_s=young_s)
        except OSError as error:
            raise NotRecorded(
                f"{self.state}: cannot be written ({error.strerror or error}); nothing was started"
            ) from None
        if meter.fresh:
            alarm = "billed is far above metered: " if meter.alarming else ""
            self.note("reading", f"{alarm}{meter.gap}", severity="critical" if meter.alarming else "info")
            if meter.alarming:
                self.say(f"!!! {alarm}{meter.gap}")
        return meter

    def _sum(self, what: str, bound: Decimal, units: Units, meter: Meter, own: Sequence[str]) -> Sum:
        session = meter.session
        out = commitments(self.ledger.runs, session, units, meter.reading.at.timestamp(), own=own)
        spent = session.spent
        account = Account(session.authorization, session.reserve, spent.usd if spent else None, out.committed)
        return Sum(what, bound, account, meter, out.parts)

    def _decide(self, total: Sum) -> None:
        closed = total.meter.session.closed_at
        try:
            if closed is not None:
                raise Refused(f"{total.what}: the session was closed at {utc_text(closed)}; open another")
            total.check()
        except Refused as refusal:
            self.note("refused", str(refusal), subject=total.what, severity="warning")
            raise
        for line in total.lines():
            self.say(line)

    def _startable(self, units: Units, unit_id: str) -> Unit:
        unit = units.by_id.get(unit_id)
        if unit is None:
            raise NotFound(f"{unit_id}: never admitted; reserve it first")
        control.check_may_start(self.state, unit_id, continues=bool(unit.counted))
        if unit.settled or unit.cancelled_by:
            raise AlreadyStarted(f"{unit_id}: is over ({unit.outcome or f'cancelled by {unit.cancelled_by}'})")
        live = unit.live
        if live is not None:
            raise AlreadyStarted(
                f"{unit_id}: has an attempt that may be running ({live.call or 'its call is not known'})"
            )
        check_alone(units, unit)
        reader = units.reader_of(unit.order.once) if unit.order.once is not None else unit
        if reader is not unit:
            raise AlreadyStarted(
                f"{unit_id}: {unit.order.once} is read once, and {reader.id if reader else '?'} has it"
            )
        if not unit.attempts_left:
            raise AlreadyStarted(f"{unit_id}: had all of its {unit.order.attempts} attempts")
        return unit

    def _check_names(self, units: Units, new: Sequence[tuple[str, Order]]) -> None:
        """Raises Refused for a study or a read that something else has been, or a second read of a test."""
        studies = {record.name for record in spawn_records(self.ledger.runs)} - {
            unit.order.name for unit in units.by_id.values()
        }
        records = set(files.list_names(self.ledger.runs))
        asked: dict[str, str] = {}
        used = {on_any_disk(each): each for each in (*studies, *(unit.order.name for unit in units.by_id.values()))}
        for name, order in new:
            twin = used.setdefault(on_any_disk(order.name), order.name)
            if twin != order.name and not units.of_name(order.name):
                raise Refused(f"{name}: {twin} is there already, and some file systems do not tell the two names "
                              "apart; use another")  # fmt: skip
            if order.kind == "trial" and order.name in studies:
                raise Refused(f"{name}: runs/{order.name}.spawn.json is there, and the ledger did not start it; "
                              "a name is never used again")  # fmt: skip
            taken = f"{order.name.removeprefix('locked/')}{READ_SUFFIX}"
            if order.kind != "trial" and taken in records and not units.of_name(order.name):
                raise Refused(f"{name}: runs/{taken} is there, and the ledger did not start it; "
                              "a name is never used again")  # fmt: skip
            if order.once is not None:
                reader = units.reader_of(order.once)
                other = reader.id if reader else asked.get(order.once)
                if other not in (None, name):
                    raise Refused(f"{name}: {order.once} is read once, and {other} has it")
                asked[order.once] = name
            if order.gateway_usd is not None:
                self._check_gateway(name, order.gateway_usd, units)

    def _check_gateway(self, name: str, bound: Decimal, units: Units) -> None:
        session = read_session(self.state)
        cap, spent = session.gateway_authorization, session.gateway_spent
        if cap is None or spent is None:
            raise Refused(
                f"{name}: what the AI gateway may spend, or has spent, is unknown; write both into {self.state.name}"
            )
        out = sum((unit.order.gateway_usd or Decimal(0) for unit in units.open()), Decimal(0))
        if spent + out + bound >= cap:
            raise Refused(
                f"{name}: gateway bound ${bound:f} + spent ${spent:f} + running ${out:f} is not below ${cap:f}"
            )

    def pause(self, reason: str, *, spend_limit: bool = False) -> None:
        """Start nothing new until a person lifts it, and say so. A disk that does not take it is told as well."""
        try:
            control.set_control(self.state, "soft", who=ENGINE, at=self._now(), reason=reason, spend_limit=spend_limit)
        except OSError as error:
            self.say(f"!!! the pause is not on disk: {error.strerror or error}")
        self.note("paused", f"nothing new is started: {reason}", severity="critical")
        self.say(f"!!! nothing new is started: {reason}; what runs is polled on")

    def _now(self) -> float:
        return self.clock.now().timestamp()


def _is_new(units: Units, name: str) -> bool:
    unit = units.by_id.get(name)
    return unit is None or (unit.settled and not unit.counted)


def _bound(units: Units, wanted: Sequence[tuple[str, Order]]) -> Decimal:
    return sum((order.attempt_usd * order.attempts for name, order in wanted if _is_new(units, name)), Decimal(0))
