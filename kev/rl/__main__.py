"""Reinforce a checkpoint on the train partition of a suite, or on questions that are generated for it."""

import argparse
from pathlib import Path
from typing import Any

from kev.console import run
from kev.errors import UsageError
from kev.records.plan import TrialConfig
from kev.rl import reinforce
from kev.rl.config import RlConfig
from kev.rl.environment import ENVIRONMENTS, draw_records
from kev.suite import open_suite
from kev.train.mix import partition_records, trial_records
from kev.train.settings import TrainingOptions

SETTINGS = [name for name in RlConfig.model_fields if name not in ("init_from", "normalise")]


def main(arguments: list[str] | None = None) -> int:
    """Parse and reinforce; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kev.rl", description=__doc__)
    parser.add_argument("--init", required=True, help="the checkpoint to start from, which is the reference too")
    parser.add_argument("--out", type=Path, required=True, help="the directory of the run")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--suite", type=Path, help="a frozen suite: its train partition, held out its development one")
    where.add_argument("--environments", nargs="+", metavar="NAME", help=f"of {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--records", type=int, default=2000, help="how many are generated (%(default)s)")
    parser.add_argument(
        "--held-out", type=int, default=400, help="how many are answered before and after (%(default)s)"
    )
    parser.add_argument("--normalise", choices=("none", "std"), default="none")
    for name in SETTINGS:
        default = RlConfig.model_fields[name].default
        kind = float if isinstance(default, float) else int
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=f"({default})")
    parser.add_argument("--resume", action="store_true", help="go on from the newest complete resume point")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--threads", type=int, help="threads of torch; the cores given, unless said")
    return run(lambda: _reinforce(parser.parse_args(arguments)))


def _reinforce(given: argparse.Namespace) -> int:
    if given.records < 1 or given.held_out < 0:
        raise UsageError("--records is at least 1 and --held-out at least 0")
    config: dict[str, Any] = {name: getattr(given, name) for name in SETTINGS}
    config |= {"init_from": given.init, "normalise": given.normalise}
    suite = None if given.suite is None else open_suite(given.suite)
    if suite is None:
        records = draw_records(given.environments, given.records, seed=given.seed)
        held_out = draw_records(given.environments, given.held_out, seed=given.seed, part="development")
    else:
        records = trial_records(TrialConfig(base=given.init), suite, Path.cwd())
        held_out = partition_records(suite, "development")[: given.held_out]
    report = reinforce(
        config,
        records,
        given.out,
        held_out=held_out,
        resume=given.resume,
        options=TrainingOptions(
            device=given.device, threads=given.threads, suite_sha256=None if suite is None else suite.sha256
        ),
    )
    return 0 if report.checkpoint.exists() else 1


if __name__ == "__main__":
    raise SystemExit(main())
