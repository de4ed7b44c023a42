"""The command line of an unattended session: which session pays, and the rounds with the real provider."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, redirect_stdout
from decimal import Decimal

from kev.budget import dollars
from kev.clock import SystemClock
from kev.compute.protocol import Compute
from kev.console import failures_of_files, say, say_aside
from kev.errors import NotFound, Refused, UsageError
from kev.rounds.engine import Engine, open_engine
from kev.rounds.specs import LoadedSpec, load_spec
from kev.rounds.watch import write_readout_of
from kev.session.desk import ask_provider
from kev.session.find import find_state, is_closed, list_states
from kev.session.open import Opening, begin, check_opening, take_baseline
from kev.session.run import Outcome, Rounds, wanted_of
from kev.session.view import read_session


def run_unattended(options: argparse.Namespace) -> Outcome:
    """Run the rounds of a command line. Raises KevError."""
    specs = [load_spec(path, options.root) for path in options.specs]
    check_different(specs)
    name = choose_session(options)
    speak = say_aside if options.json else say

    @asynccontextmanager
    async def engine_of(loaded: LoadedSpec) -> AsyncIterator[Engine]:
        engine = open_engine(loaded, name, speak)
        try:
            yield engine
        finally:
            await engine.compute.aclose()

    def finish(loaded: LoadedSpec) -> bool:
        # With --json the output is one object, and the table of a read-out goes beside it.
        with redirect_stdout(sys.stderr if options.json else sys.stdout):
            return write_readout_of(loaded)

    with failures_of_files():
        if options.dry_run:
            return preview([(loaded, open_engine(loaded, name, speak)) for loaded in specs], speak)
        return asyncio.run(Rounds(engine_of, finish, speak, options.stagger, options.interval).run(specs))


def check_different(specs: list[LoadedSpec]) -> None:
    """Raises UsageError for a round that is named twice."""
    numbers = [loaded.spec.round for loaded in specs]
    for number in numbers:
        if numbers.count(number) > 1:
            raise UsageError(f"round {number}: is named twice")


def choose_session(options: argparse.Namespace) -> str:
    """The session that pays. `--spend-start` with `--spend-cap` opens one where none is open, and else must agree.

    Raises UsageError, Refused or NotFound.
    """
    runs = options.root / "runs"
    start, cap = _amount(options.spend_start), _amount(options.spend_cap)
    if (start is None) != (cap is None):
        raise UsageError("--spend-start and --spend-cap go together")
    if start is not None and cap is not None and options.session is None and all(map(is_closed, list_states(runs))):
        return _open(options, start, cap)
    session = read_session(find_state(runs, options.session))
    if cap is not None and (session.authorization, session.baseline) != (cap, start):
        raise Refused(
            f"session {session.name}: was opened with ${session.authorization:.2f} from ${session.baseline or 0:.2f}, "
            f"and the command line says ${cap:.2f} from ${start or 0:.2f}; leave --spend-start and --spend-cap away"
        )
    return session.name


def _open(options: argparse.Namespace, start: Decimal, cap: Decimal) -> str:
    clock = SystemClock()
    wanted = Opening(f"autoresearch-{clock.now():%Y%m%dT%H%M%SZ}", cap)
    path = check_opening(options.root, wanted)
    if options.dry_run:
        raise NotFound(f"{path.parent}: no session is open; without --dry-run {wanted.name} would be opened")

    async def work(compute: Compute) -> int:
        state = await take_baseline(compute, clock, wanted)
        if state.baseline_usd < start:
            raise Refused(f"--spend-start {start:f}: the meter stands at ${state.baseline_usd:f}, which is less; a "
                          "cycle has ended since, or the figure is another workspace's")  # fmt: skip
        begin(path, state.model_copy(update={"baseline_usd": start}), clock.now())
        return 0

    ask_provider(work)
    return wanted.name


def _amount(value: float | None) -> Decimal | None:
    if value is None:
        return None
    amount = Decimal(str(value))
    if not (amount.is_finite() and amount >= 0):
        raise UsageError(f"{value!r:.40}: write an amount of US dollars")
    return amount


def preview(rounds: list[tuple[LoadedSpec, Engine]], speak: Callable[[str], None]) -> Outcome:
    """Say what each round would cost until its read-out, by itself; nothing is asked and nothing is launched."""
    for loaded, engine in rounds:
        wanted = wanted_of(engine, loaded)
        bound = sum((order.attempt_usd * order.attempts for _, order in wanted), Decimal(0))
        speak(f"round {loaded.spec.round}: {len(wanted)} units, bound {dollars(bound)}")
    return Outcome()
