"""`python -m kev.rounds status`: what the ledger holds of a round, unit by unit. Asks nobody and writes nothing."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kev.commitments import is_on_record
from kev.console import say
from kev.control import read_control
from kev.errors import DamagedFile
from kev.ledger.book import Ledger
from kev.ledger.units import Unit
from kev.rounds.engine import add_session_arguments
from kev.rounds.specs import load_spec
from kev.session.find import find_state


def describe(unit: Unit) -> dict[str, Any]:
    """One unit as JSON values."""
    attempt = unit.current
    return {
        "unit": unit.id,
        "state": state_of(unit),
        "call": attempt.call if attempt else None,
        "attempt": len(unit.counted),
        "attempts_allowed": unit.order.attempts,
        "gpu": unit.order.gpu,
        "timeout": unit.order.timeout,
        "rest_usd": str(unit.rest()),
        "at": attempt.at if attempt else None,
        "text": unit.text or (attempt.text if attempt else None),
    }


def state_of(unit: Unit) -> str:
    """One word: wanted, pending, running, stopping, or how the unit or its last attempt ended."""
    if unit.outcome is not None:
        return unit.outcome
    live = unit.live
    if live is None:
        current = unit.current
        return "wanted" if current is None else current.outcome or "ended"
    if unit.cancelled_by is not None:
        return "stopping"
    return "pending" if live.pending else "running"


def damaged_records(runs: Path, names: Iterable[str]) -> list[str]:
    """Of which of these studies the record cannot be believed, and why: they may be running."""
    found = []
    for name in names:
        try:
            is_on_record(runs, name)
        except DamagedFile as error:
            found.append(str(error))
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `status`."""
    add_session_arguments(parser)


def status_command(arguments: argparse.Namespace) -> int:
    """Print the units of the round. Raises KevError."""
    loaded = load_spec(arguments.spec, arguments.root)
    runs = loaded.root / "runs"
    units = [unit for unit in Ledger(runs).read().by_id.values()
             if unit.order.round == loaded.spec.round and unit.order.kind != "sources"]  # fmt: skip
    control = read_control(find_state(runs, arguments.session))
    rows = [describe(unit) for unit in units]
    damaged = damaged_records(runs, loaded.spec.studies)
    if arguments.json:
        value = {"round": loaded.spec.round, "mode": control.mode, "reason": control.reason, "units": rows,
                 "damaged": damaged}  # fmt: skip
        print(json.dumps(value, indent=2))
        return 0
    for row in rows:
        text = f" ({row['text']})" if row["text"] else ""
        say(
            f"{row['unit']}: {row['state']}, attempt {row['attempt']} of {row['attempts_allowed']}, "
            f"{row['call'] or '-'}, ${float(row['rest_usd']):.2f} may still be spent{text}"
        )
    for line in damaged:
        say(f"!!! {line}")
    say(f"{len(rows)} units; the session is {control.mode}" + (f": {control.reason}" if control.reason else ""))
    return 0
