"""What is alive at the provider against what the ledger knows; it starts from the provider's list, not from ours."""

from collections.abc import Collection
from datetime import timedelta

from kev.compute.errors import RemoteError
from kev.compute.protocol import CallSummary
from kev.ledger.units import Units
from kev.rounds.engine import Engine
from kev.worker.orders import (
    AGENT_FUNCTION,
    BENCHMARK_FUNCTION,
    BLEND_FUNCTION,
    FULL_TRIAL_FUNCTION,
    LOCKED_TEST_FUNCTION,
    MIRROR_FUNCTION,
    RESCORE_FUNCTION,
    SHARDED_TRIAL_FUNCTION,
    TRIAL_FUNCTION,
)

LOOK_BACK = timedelta(days=2)
"""By how much the clock of this machine may be ahead of the provider's: a call that is not looked for is not seen."""

FUNCTIONS = frozenset({
    TRIAL_FUNCTION, FULL_TRIAL_FUNCTION, SHARDED_TRIAL_FUNCTION, BENCHMARK_FUNCTION, LOCKED_TEST_FUNCTION,
    RESCORE_FUNCTION, BLEND_FUNCTION, MIRROR_FUNCTION, AGENT_FUNCTION,
})  # fmt: skip
"""Everything of an app that costs money for longer than a moment."""


async def unknown_calls(engine: Engine, function: str, since: float, units: Units) -> list[CallSummary] | None:
    """Calls of a function since then (Unix seconds) that no attempt has; None if the provider does not say."""
    try:
        rows = await engine.compute.recent_calls(function, since=engine.utc(since) - LOOK_BACK)
    except RemoteError:
        return None
    # Read again: while the list was asked for, another process may have put its call on record.
    known = engine.ledger.read().calls() | units.calls()
    return [row for row in rows if row.id not in known]


async def orphans(
    engine: Engine, since: float, functions: Collection[str], also: Collection[str] = ()
) -> dict[str, str] | None:
    """Calls that are alive and that nothing here started, call -> function; None if the provider does not say.

    Of the functions in `also`, which nothing here has used, it need not say: an older app may not have them.
    """
    units = engine.ledger.read()
    found: dict[str, str] = {}
    for function in [*functions, *also]:
        rows = await unknown_calls(engine, function, since, units)
        if rows is None and function in functions:
            return None
        found |= {row.id: function for row in rows or () if not row.phase.is_terminal}
    return found
