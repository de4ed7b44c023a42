"""Taking into the ledger what was launched before there was one: a spawn record becomes units with their attempts.

Nothing is admitted by it: the work runs, or has run, and counted before as a record that the ledger did not make. From
then on it counts as what its units can still cost.
"""

import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kev.budget import FULL_WEIGHT_ATTEMPTS, compute_bound
from kev.errors import Refused
from kev.gate import Gate
from kev.ledger.units import trial_id
from kev.records.ledger import LedgerEvent
from kev.records.spawn import Attempt, SpawnRecord
from kev.rounds.trial_orders import Provenance, Wanted, round_up, trial_order


def adopt_record(
    gate: Gate, record: SpawnRecord, configs: Mapping[str, dict[str, Any]], *, suite: str, transfer: str | None,
    gpu: str, timeout: int, provenance: Provenance,
) -> None:  # fmt: skip
    """Put the study of a spawn record into the ledger, unless it is there.

    `configs` are the configurations that are known, by label; a trial without one cannot be continued. `gpu` and
    `timeout` stand in where the record has none. Raises Refused for a label that names no trial, DamagedFile or
    NotRecorded.
    """
    orders: list[Wanted] = []
    for label in record.calls:
        index = label.rpartition("-")[2]
        if not index.isdecimal():
            raise Refused(f"study {record.name}: its record has a trial {label!r:.80}, which is none")
        order = trial_order(
            record.name, int(index), configs.get(label, {}), suite=suite, transfer=transfer, gpu=record.gpu or gpu,
            timeout=int(record.timeout or timeout), full_weight=bool(record.full_ft),
            attempt_usd=_attempt_usd(record, gpu, timeout), study_usd=record.bound_usd, provenance=provenance,
        )  # fmt: skip
        used = len(attempts_of(record, label))
        allowed = record.attempts_allowed() if record.has_ledger and label in configs else used
        orders.append((trial_id(record.name, label), order.model_copy(update={"attempts": max(used, allowed)})))
    with gate.ledger.writing() as book:
        if book.units.of_name(record.name):
            return
        at = gate.clock.now().timestamp()
        events = [LedgerEvent(event="wanted", at=at, orders=dict(orders), who=gate.who, text="from its spawn record")]
        for label in record.calls:
            events += _events(record, label)
        book.add(*events)
    gate.note("adopted", "launched before there was a ledger; from its spawn record", subject=record.name)


def attempts_of(record: SpawnRecord, label: str) -> list[Attempt]:
    """The attempts of a trial; of a record without a ledger, as many as it may have had."""
    entries = list(record.attempts.get(label, []))
    if not record.has_ledger:
        missing = record.attempts_allowed() - len(entries)
        entries = [Attempt(nonce=secrets.token_hex(16), call=None, at=0) for _ in range(missing)] + entries
        entries[-1] = entries[-1].model_copy(update={"call": record.calls[label]})
    return entries or [Attempt(nonce=secrets.token_hex(16), call=record.calls[label], at=0)]


def _events(record: SpawnRecord, label: str) -> list[LedgerEvent]:
    unit, entries = trial_id(record.name, label), attempts_of(record, label)
    events = []
    for number, entry in enumerate(entries, start=1):
        events.append(LedgerEvent(event="intent", at=entry.at, unit=unit, nonce=entry.nonce))
        if entry.call is not None:
            events.append(LedgerEvent(event="call", at=entry.at, unit=unit, nonce=entry.nonce, call=entry.call))
        if entry.abandoned is not None:
            events.append(LedgerEvent(event="abandoned", at=entry.abandoned, unit=unit, nonce=entry.nonce))
        elif number < len(entries):
            # Only the last attempt can be running: each was spawned after the one before had ended.
            events.append(
                LedgerEvent(event="ended", at=entries[number].at, unit=unit, nonce=entry.nonce, outcome="timed_out")
            )
    return events


def _attempt_usd(record: SpawnRecord, gpu: str, timeout: int) -> Decimal:
    if record.bound_usd is not None:
        return round_up(record.bound_usd / len(record.calls) / record.attempts_allowed())
    full_weight = bool(record.full_ft)
    bound = compute_bound(record.gpu or gpu, record.timeout or timeout, 1, full_weight)
    return round_up(bound / (FULL_WEIGHT_ATTEMPTS if full_weight else 1))
