"""`python -m kev.session refresh`: read the meter now, put it on record, and print the sum with it."""

import argparse

from kev.compute.protocol import Compute
from kev.meter import check_summary, describe_gap
from kev.session.desk import add_place, answer, ask_provider, open_gate
from kev.session.standing import read_standing
from kev.session.view import read_session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `refresh`."""
    add_place(parser)
    parser.add_argument("--dry-run", action="store_true", help="read the meter, and keep no record of it")


def refresh_command(arguments: argparse.Namespace) -> int:
    """Take a reading. Raises KevError."""

    async def work(compute: Compute) -> int:
        gate = open_gate(arguments, compute)
        if arguments.dry_run:
            summary = await compute.billing_summary()
            check_summary(summary, read_session(gate.state))
            answer(arguments, {"metered_usd": str(summary.metered), "billed_usd": str(summary.billed),
                               "simulated": summary.simulated},
                   [describe_gap(summary.metered, summary.billed)])  # fmt: skip
            return 0
        meter = await gate.read_meter(young_s=0)
        standing = read_standing(gate.state, gate.clock.now())
        answer(arguments, {**standing.to_json(), "note": meter.note},
               [*standing.lines(), *([f"!!! {meter.note}"] if meter.note else [])])  # fmt: skip
        return 0 if meter.fresh else 1

    return ask_provider(work)
