"""`python -m kev.session open`: say what may be spent, and where the meter stands when it begins.

Nothing is launched without a session that says what it may spend. What earlier sessions left running is counted in the
new one, since the provider meters it from now on.
"""

import argparse
import asyncio
import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from kev import files
from kev.budget import reserve
from kev.clock import Clock, SystemClock
from kev.compute.protocol import Compute, CostSummary
from kev.console import operator, say_aside
from kev.errors import Refused, UsageError
from kev.meter import check_amounts
from kev.records.base import MAX_DOLLARS
from kev.records.session import SessionState
from kev.rounds.patience import wait_out
from kev.rounds.specs import load_spec
from kev.session.desk import add_place, answer, ask_provider
from kev.session.find import is_closed, list_states
from kev.session.journal import append_event, events_path
from kev.session.standing import read_standing
from kev.session.state import create_state, utc_text
from kev.session.view import STATE_SUFFIX, session_name
from kev.spelling import on_any_disk

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session is opened with. Amounts are US dollars."""

    name: str
    authorization: Decimal
    reserve: Decimal | None = None
    """A tenth of the authorization where nobody says otherwise."""
    gateway: Decimal | None = None
    """What the AI gateway may spend besides; without it, nothing of it may be used."""
    rounds: tuple[str, ...] = ()
    """Specs, relative to the checkout."""


def check_opening(root: Path, wanted: Opening) -> Path:
    """The state file that a session would get. Raises UsageError, Refused, NotFound or DamagedFile."""
    if not NAME.fullmatch(wanted.name):
        raise UsageError(f"session {wanted.name!r:.100}: a name is 1 to 80 letters, digits, _ or -, and begins with a "
                         "letter or digit")  # fmt: skip
    kept = reserve(wanted.authorization) if wanted.reserve is None else wanted.reserve
    if kept >= wanted.authorization:
        raise Refused(f"--reserve {kept:f}: the whole authorization of ${wanted.authorization:f} would be kept back")
    for spec in wanted.rounds:
        if not (root / spec).resolve().is_relative_to(root.resolve()):
            raise Refused(f"--round {spec}: write the path of a spec inside this checkout")
        loaded = load_spec(root / spec, root)
        if loaded.spec.archive is not None:
            raise Refused(f"--round {spec}: is a recorded round ({loaded.spec.archive}); it is read out, never run")
    state = root / "runs" / f"{wanted.name}{STATE_SUFFIX}"
    taken = {on_any_disk(name): name for name in files.list_names(state.parent)}.get(on_any_disk(state.name))
    if taken is not None:
        raise Refused(
            f"{state.with_name(taken)}: there is a session of this name already; choose another name, or go on with it"
        )
    return state


async def take_baseline(compute: Compute, clock: Clock, wanted: Opening) -> SessionState:
    """The state of the session, beginning at what the meter shows now. Raises Refused, or a RemoteError."""
    summary = await compute.billing_summary()
    check_amounts(summary)
    return new_state(wanted, summary, utc_text(clock.now()))


def new_state(wanted: Opening, summary: CostSummary, at: str) -> SessionState:
    """The state that a session begins with."""
    reading = {"at": at, "metered_usd": summary.metered, "billed_usd": summary.billed, "source": "billing summary"}
    values = {
        "session": wanted.name,
        # Whose money it is, is the provider's to say: an emulator cannot open a session of real money.
        "simulated": summary.simulated,
        "authorization_usd": wanted.authorization,
        "reserve_usd": reserve(wanted.authorization) if wanted.reserve is None else wanted.reserve,
        "baseline_usd": summary.metered,
        "cycle": f"{summary.start:%Y-%m}",
        "readings": [reading],
        "rounds": list(wanted.rounds),
        "opened_at": at,
    }
    if wanted.gateway is not None:
        values["ai_gateway"] = {"authorization_usd": wanted.gateway, "spent_usd": Decimal(0)}
    return SessionState.model_validate(values)


def begin(path: Path, state: SessionState, at: datetime) -> None:
    """Write the state of a new session, and its opening into the journal. Raises Refused if the name is taken."""
    create_state(path, state)
    append_event(events_path(path), at, "opened", f"{_money(state)}, baseline ${state.baseline_usd:f}", who=operator())


def _money(state: SessionState) -> str:
    return f"{'simulated ' if state.simulated else ''}authorization ${state.authorization_usd:f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `open`."""
    add_place(parser, named=False)
    parser.add_argument("name", metavar="NAME", help="of the session; its state is runs/NAME-state.json")
    parser.add_argument(
        "--authorization", type=dollars, required=True, metavar="USD", help="what it may spend in all, everything "
        "that still runs included",
    )  # fmt: skip
    parser.add_argument(
        "--reserve", type=dollars_or_none, metavar="USD", help="kept back (a tenth of the authorization)"
    )
    parser.add_argument(
        "--gateway", type=dollars_or_none, metavar="USD", help="what the AI gateway may spend besides (nothing)"
    )
    parser.add_argument("--round", action="append", default=[], metavar="SPEC", dest="rounds",
                        help="a round that it is opened for; may be repeated")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="read the meter, print the state, and write nothing")


def open_command(arguments: argparse.Namespace) -> int:
    """Open a session. Raises KevError."""
    wanted = Opening(
        arguments.name, arguments.authorization, arguments.reserve, arguments.gateway, tuple(arguments.rounds)
    )
    path = check_opening(arguments.root, wanted)
    clock = SystemClock()

    async def work(compute: Compute) -> int:
        state = await wait_out(lambda: take_baseline(compute, clock, wanted), say_aside, asyncio.sleep)
        if arguments.dry_run:
            answer(
                arguments,
                {"would_write": str(path), "state": state.to_json()},
                [f"would open {path}: {_money(state)}, baseline ${state.baseline_usd:f} in cycle {state.cycle}"],
            )
            return 0
        begin(path, state, clock.now())
        standing = read_standing(path, clock.now())
        others = [session_name(other) for other in list_states(path.parent) if other != path and not is_closed(other)]
        notes = [f"!!! session {other} is still open; name yours with --session" for other in others]
        answer(arguments, {"state": str(path), "still_open": others, **standing.to_json()},
               [f"opened {path}", *standing.lines(), *notes])  # fmt: skip
        return 0

    return ask_provider(work)


def dollars(text: str) -> Decimal:
    """An amount on a command line. Raises argparse.ArgumentTypeError."""
    amount = dollars_or_none(text)
    if not amount:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: write an amount of US dollars above 0")
    return amount


def dollars_or_none(text: str) -> Decimal:
    """As `dollars`, and 0 as well."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("nan")
    if not (amount.is_finite() and 0 <= amount < MAX_DOLLARS):
        raise argparse.ArgumentTypeError(f"{text!r:.40}: write an amount of US dollars")
    return amount
