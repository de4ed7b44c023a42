"""What every command that touches remote work needs: the checkout, the session, the gate and the provider."""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kev.clock import Clock, SystemClock
from kev.commitments import is_on_record
from kev.compute.protocol import Compute
from kev.console import failures_of_files, operator, say, say_aside
from kev.errors import NotFound
from kev.gate import Gate
from kev.ledger.book import Ledger
from kev.ledger.units import Unit
from kev.rounds.specs import LoadedSpec, load_spec
from kev.rounds.trial_orders import Provenance
from kev.session import read_session
from kev.session.find import find_state
from kev.worker.sources import digest, source_hashes

RUNS_VOLUME = "kev-runs"
LEASE_VOLUME = "kev-leases"
DEFAULT_APP = "kev-research"
STAGGER_S = 60.0

Gather = Callable[[Sequence[Coroutine[Any, Any, Any]]], Awaitable[list[Any]]]


async def gather(coroutines: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Their results in order, asked for at once."""
    return list(await asyncio.gather(*coroutines))


@dataclass
class Engine:
    """The engine of one session over one checkout. Clock, sleep and gather are those of the process."""

    root: Path
    gate: Gate
    count_claims: Callable[[str], Awaitable[tuple[int, bool]]]
    """How often a trial (`<study>/<NN>-<label>`) was claimed, and whether the last claim has ended."""
    provenance: Provenance = field(default_factory=Provenance)
    gather: Gather = gather

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def ledger(self) -> Ledger:
        return self.gate.ledger

    @property
    def compute(self) -> Compute:
        return self.gate.compute

    @property
    def clock(self) -> Clock:
        return self.gate.clock

    def unit(self, unit_id: str) -> Unit:
        """A unit of the ledger. Raises NotFound, or DamagedFile where its record is here and cannot be believed."""
        unit = self.ledger.read().by_id.get(unit_id)
        if unit is None:
            is_on_record(self.runs, unit_id.removeprefix("trial/").partition("/")[0])
            raise NotFound(f"{unit_id}: is not in the ledger; `status` lists what is")
        return unit

    def say(self, line: str) -> None:
        self.gate.say(line)

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.now().timestamp()

    def utc(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(seconds, UTC)


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that needs a session."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="experiments/rounds/r<N>.json")
    parser.add_argument("--root", type=Path, metavar="DIR", help="what the spec's paths are relative to")
    parser.add_argument("--session", metavar="NAME", help="the session that pays, where runs/ holds several")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def app_of(loaded: LoadedSpec) -> str:
    """The app that a round runs in."""
    return loaded.spec.app or os.environ.get("KEV_APP_NAME") or DEFAULT_APP


def open_engine(loaded: LoadedSpec, session: str | None, say: Callable[[str], None]) -> Engine:
    """The engine with the real provider, connected at first use."""
    from kev.compute.client import ModalSettings
    from kev.compute.modal_compute import ModalCompute

    runs = loaded.root / "runs"
    state = find_state(runs, session)
    clock = SystemClock()
    compute = ModalCompute(ModalSettings(app=app_of(loaded)), clock=clock)
    gate = Gate(state, Ledger(runs), compute, clock, asyncio.sleep, say, operator())
    provenance = Provenance(
        digest(source_hashes(loaded.root)), os.environ.get("KEV_GIT_COMMIT"), read_session(state).name
    )
    return Engine(loaded.root, gate, _count_claims, provenance)


async def _count_claims(trial: str) -> tuple[int, bool]:
    from kev.compute.claims import DictClaims
    from kev.compute.leases import CLAIMS_DICT, count_claims

    def ask() -> tuple[int, bool]:
        return count_claims(DictClaims(CLAIMS_DICT), trial)

    return await asyncio.to_thread(ask)


def run_engine(arguments: argparse.Namespace, work: Callable[[Engine, LoadedSpec], Coroutine[Any, Any, int]]) -> int:
    """Load the spec, open the engine, do `work` and close it. Returns its exit code; raises KevError."""
    loaded = load_spec(arguments.spec, arguments.root)
    engine = open_engine(loaded, arguments.session, say_aside if arguments.json else say)

    async def run() -> int:
        try:
            return await work(engine, loaded)
        finally:
            await engine.compute.aclose()

    with failures_of_files():
        return asyncio.run(run())
