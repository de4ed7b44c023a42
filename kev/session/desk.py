"""What the commands of a session share: their options, the provider, and how they answer."""

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kev.clock import SystemClock
from kev.compute.protocol import Compute
from kev.console import failures_of_files, operator, say_aside
from kev.gate import Gate
from kev.ledger.book import Ledger
from kev.session.find import find_state
from kev.text import visible


def add_place(parser: argparse.ArgumentParser, *, named: bool = True) -> None:
    """The options of every command of a session."""
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="the checkout (here)")
    if named:
        parser.add_argument("--session", metavar="NAME", help="which session, where several are open")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def answer(arguments: argparse.Namespace, value: dict[str, Any], lines: list[str]) -> None:
    """Print `value` or `lines`, as was asked for."""
    if arguments.json:
        print(json.dumps(value, indent=2, allow_nan=False))
    else:
        print("\n".join(visible(line) for line in lines))


def ask_provider(work: Callable[[Compute], Awaitable[int]]) -> int:
    """Do `work` with the provider, which is connected at its first question. Raises KevError."""
    # grpclib, which a command that asks nobody does without.
    from kev.compute.client import DEFAULT_APP, ModalSettings
    from kev.compute.modal_compute import ModalCompute

    async def run() -> int:
        async with ModalCompute(ModalSettings(app=os.environ.get("KEV_APP_NAME") or DEFAULT_APP)) as compute:
            return await work(compute)

    with failures_of_files():
        return asyncio.run(run())


def open_gate(arguments: argparse.Namespace, compute: Compute) -> Gate:
    """The gate of the session that is meant."""
    runs = arguments.root / "runs"
    state = find_state(runs, arguments.session)
    return Gate(state, Ledger(runs), compute, SystemClock(), asyncio.sleep, say_aside, operator())
