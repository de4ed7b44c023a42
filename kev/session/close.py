"""`python -m kev.session close`: end a session, with its summary and the rows of its rounds in the plan.

From then on nothing is started under it; what it left running is polled and brought home as before. Closing a closed
session writes its summary anew.
"""

import argparse
from pathlib import Path

from kev import files
from kev.compute.errors import RemoteError
from kev.compute.protocol import Compute
from kev.console import failures_of_files
from kev.errors import LockHeld, Refused, UsageError
from kev.gate import Gate
from kev.rounds.watching.loop import watcher_lock
from kev.session.desk import add_place, answer, ask_provider, open_gate
from kev.session.plan_document import update_plan
from kev.session.state import change_locked_state, utc_text
from kev.session.view import read_session
from kev.session_report import SessionReport, read_report

SHOWN = 5
"""Unsettled works that a refusal names."""


def unsettled(report: SessionReport) -> list[str]:
    """What keeps a session from being closed, one line each."""
    return [f"{each.name} ({each.state}): {each.command}" for each in report.pending]


def check_closable(state: Path, report: SessionReport) -> None:
    """Raises Refused for a session of which something is unsettled or watched."""
    found = unsettled(report)
    try:
        with files.locked(watcher_lock(state)):
            pass
    except LockHeld as error:
        found.insert(0, f"its watcher runs ({error.holder})")
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise Refused(f"session {report.session}: not everything is settled: {'; '.join(found[:SHOWN])}{more}; finish "
                      "it, or close it all the same with --force --reason TEXT")  # fmt: skip


async def close_session(gate: Gate, root: Path, *, force: bool = False, reason: str = "") -> SessionReport:
    """Close the session of `gate` and write its summary. Returns the report that the summary is made from.

    Raises Refused, LockHeld, DamagedFile, NotRecorded, a RemoteError, or OSError.
    """
    try:
        await gate.read_meter(young_s=0)
    except (Refused, RemoteError) as error:
        if not force:
            raise Refused(f"the last reading cannot be made: {error}; try again, or --force --reason TEXT") from None
        gate.note("reading", f"none before closing: {error}", severity="warning")
    async with gate.locked():  # nothing is admitted between the look and the end
        now = gate.clock.now()
        if not force:
            check_closable(gate.state, read_report(root, gate.state, now))
        if read_session(gate.state).closed_at is None:
            closed = {"closed_at": utc_text(now), **({"closed_reason": reason} if reason else {})}
            change_locked_state(gate.state, lambda old: old.model_copy(update=closed))
            gate.note(
                "closed", f"by force: {reason}" if force else reason or "everything is settled",
                severity="warning" if force else "info",
            )  # fmt: skip
    report = read_report(root, gate.state, now)
    update_plan(root, report)
    return report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `close`."""
    add_place(parser)
    parser.add_argument("--force", action="store_true", help="with work unsettled, or without a last reading")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the record; --force needs it")
    parser.add_argument("--dry-run", action="store_true", help="say what is unsettled; ask nobody and write nothing")


def close_command(arguments: argparse.Namespace) -> int:
    """Close a session. Raises KevError."""
    if arguments.force and not arguments.reason.strip():
        raise UsageError("--force needs --reason TEXT: the record says why work was left unsettled")

    async def work(compute: Compute) -> int:
        gate = open_gate(arguments, compute)
        if arguments.dry_run:
            report = read_report(arguments.root, gate.state, gate.clock.now())
            left = unsettled(report)
            answer(arguments, {"session": report.session, "unsettled": left},
                   [*left, f"session {report.session}: {len(left)} unsettled"])  # fmt: skip
            return 0
        with failures_of_files("; run close again"):
            report = await close_session(gate, arguments.root, force=arguments.force, reason=arguments.reason)
        spent = report.money.spent
        word = "simulated " if report.simulated else ""
        answer(arguments, report.to_json(), [
            f"closed session {report.session}: {word}spent {'unknown' if spent is None else f'${spent:,.2f}'} of "
            f"${report.money.authorization:,.2f}; its summary is in PLAN.md",
            *(f"!!! left unsettled: {each}" for each in unsettled(report)),
            f"put it on record: python -m kev.session commit --session {report.session}",
        ])  # fmt: skip
        return 0

    return ask_provider(work)
