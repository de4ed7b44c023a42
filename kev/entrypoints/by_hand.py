"""The gate for what a person starts by hand: that of the open session, or where there is none, one without a sum.

Without a session nobody said what may be spent in all. Then a study's own `--budget` bounds it, and a read its own
timeout; the critical section, the ledger and the names are the same.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from typing_extensions import override

from kev.commitments import read_records, spawn_records
from kev.console import operator
from kev.entrypoints.place import Place
from kev.errors import Refused
from kev.gate import Decide, Gate
from kev.git import commit_of
from kev.ledger.book import Ledger
from kev.ledger.units import Units
from kev.rounds.trial_orders import Provenance
from kev.session.find import find_state, is_closed, list_states
from kev.worker.sources import digest, source_hashes

LOCK = "by-hand"
"""Names the lock and the journal of what no session pays for."""


@dataclass
class HandGate(Gate):
    """A gate without a session: no meter, no authorization, no pause; everything else as it is."""

    _told: set[str] = field(default_factory=set)
    """What the user has been told the bound of; it is asked for again by each spawn."""

    @property
    @override
    def session(self) -> str | None:
        return None

    @override
    async def _prepare(self, units: Units) -> Decide:
        def decide(what: str, bound: Decimal, _units: Units, own: Sequence[str]) -> str:
            # Whatever cannot be read may stand for running work of the same name.
            list(spawn_records(self.ledger.runs))
            list(read_records(self.ledger.runs))
            if not (bound.is_finite() and bound > 0):
                raise Refused(f"{what}: bound {bound} is no amount above zero")
            if what not in self._told and not what.startswith("sources/"):
                self.say(f"{what}: bound ${bound:.2f}; no session is open, so no sum is kept")
            self._told |= {what, *own}
            return f"bound ${bound:.2f}, without a session"

        return decide

    @override
    def _show_work(self) -> None:
        """No session has a list of it."""

    @override
    def _check_gateway(self, name: str, bound: Decimal, units: Units) -> None:
        raise Refused(f"{name}: no session says what the AI gateway may spend; open one with --gateway USD")

    @override
    def pause(self, reason: str, *, spend_limit: bool = False) -> None:
        """Only on record: nothing can be paused, and whoever asked is told by the error."""
        self.note("paused", reason, severity="critical")


def open_gate(place: Place) -> Gate:
    """The gate of the session that pays: of KEV_SESSION, or the only open one; else one without a session.

    Raises UsageError if several sessions are open, NotFound for a name that has none.
    """
    runs = place.runs
    named = os.environ.get("KEV_SESSION")
    state: Path | None = None
    if named is not None or any(not is_closed(path) for path in list_states(runs)):
        state = find_state(runs, named)
    kind: Callable[..., Gate] = Gate if state is not None else HandGate
    return kind(state or runs / f"{LOCK}-state.json", Ledger(runs), place.compute, place.clock, place.pause, place.say,
                operator())  # fmt: skip


def provenance_of(place: Place, gate: Gate) -> Provenance:
    """What the orders of this checkout say of where they come from."""
    return Provenance(digest(source_hashes(place.root)), commit_of(place.root), gate.session)
