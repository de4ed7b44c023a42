"""What the commands of a session share: their options, the provider, and how they answer."""

import argparse
import asyncio
import getpass
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kev.clock import SystemClock
from kev.compute.protocol import Compute
from kev.errors import KevError
from kev.gate import Gate
from kev.ledger.book import Ledger
from kev.session.find import find_state
from kev.text import visible

DEFAULT_APP = "kev-research"


def add_place(parser: argparse.ArgumentParser, *, named: bool = True) -> None:
    """The options of every command of a session."""
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="the checkout (here)")
    if named:
        parser.add_argument("--session", metavar="NAME", help="which session, where several are open")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def who() -> str:
    """Who does it, for the record."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def answer(arguments: argparse.Namespace, value: dict[str, Any], lines: list[str]) -> None:
    """Print `value` or `lines`, as was asked for."""
    if arguments.json:
        print(json.dumps(value, indent=2, allow_nan=False))
    else:
        print("\n".join(visible(line) for line in lines))


def ask_provider(work: Callable[[Compute], Awaitable[int]]) -> int:
    """Do `work` with the provider, which is connected at its first question. Raises KevError."""
    # grpclib, which a command that asks nobody does without.
    from kev.compute.client import ModalSettings
    from kev.compute.modal_compute import ModalCompute

    async def run() -> int:
        async with ModalCompute(ModalSettings(app=os.environ.get("KEV_APP_NAME") or DEFAULT_APP)) as compute:
            return await work(compute)

    try:
        return asyncio.run(run())
    except BrokenPipeError:
        raise  # whoever read the output has what they wanted
    except OSError as error:
        raise KevError(f"{error.filename or 'disk'}: {error.strerror or error}") from None


def open_gate(arguments: argparse.Namespace, compute: Compute) -> Gate:
    """The gate of the session that is meant."""
    runs = arguments.root / "runs"
    state = find_state(runs, arguments.session)
    return Gate(state, Ledger(runs), compute, SystemClock(), asyncio.sleep, _say, who())


def _say(line: str) -> None:
    import sys

    # With --json the output is one object, and what is said on the way goes beside it.
    print(visible(line), file=sys.stderr)
