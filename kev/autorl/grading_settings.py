"""How a run is graded: its time, how many submissions, by which rules and with what; and the options that say so."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from kev.errors import UsageError
from kev.records.autorl import Rules


@dataclass(frozen=True, slots=True)
class GradingSettings:
    """What two runs of one task on one base may differ in."""

    timeout_s: float
    submissions: int
    rules: Rules
    engine: str
    grading_seconds: float
    """The longest that one grading may take."""
    known: tuple[Path, ...] = ()
    """Published models that nobody may submit as their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that `settings_of` reads."""
    parser.add_argument("--timeout", type=float, default=43_200, metavar="S", help="the run's time (43200)")
    parser.add_argument("--submissions", type=int, default=20, metavar="N", help="how many are graded (20)")
    parser.add_argument("--engine", default="auto", help="auto, transformers or vllm")
    parser.add_argument("--grading-timeout", type=float, default=1800, metavar="S", help="of one grading (1800)")
    parser.add_argument("--compat", action="store_true", help="looser rules, for agents of AutoRL-Bench")


def settings_of(options: argparse.Namespace, *, known: tuple[Path, ...] = ()) -> GradingSettings:
    """What the options say. Raises UsageError for times and numbers that are none."""
    if options.timeout <= 0 or options.submissions < 1 or options.grading_timeout <= 0:
        raise UsageError("--timeout, --submissions and --grading-timeout are above 0")
    return GradingSettings(
        timeout_s=options.timeout,
        submissions=options.submissions,
        rules="compat" if options.compat else "strict",
        engine=options.engine,
        grading_seconds=options.grading_timeout,
        known=known,
    )
