"""Run a plan's trials on this machine: train, score, judge, rank.

    python -m kev.experiment --suite evals/decision-v1 --transfer evals/transfer-v1 --plan PLAN.json --out runs/mine
    python -m kev.experiment --suite evals/decision-v1 --transfer evals/transfer-v1 --out runs/mine --resume
    python -m kev.experiment --out runs/pulled --aggregate

Trials run one after another; one runner works at a time. `--resume` goes on with what a kill left unfinished: training
from its last resume point, scoring from its last answer. With the plan as well, its trials that had not begun begin.
`--aggregate` ranks a study that was pulled.
"""

import argparse
import os
import time
from contextlib import suppress
from pathlib import Path

from kev.console import run, say, say_aside
from kev.evaluators import EVALUATOR_FILES, evaluator_hashes
from kev.procedure.training import only_training
from kev.records.plan import SNAPSHOT_FRACTIONS
from kev.suite import open_suite
from kev.trial.job import TrialJob
from kev.trial.ranking import Ranked, aggregate
from kev.trial.study import (
    Study,
    describe,
    plan_jobs,
    resume_study,
    run_study,
    unbegun_jobs,
    unfinished_jobs,
    wait_for,
)  # fmt: skip
from kev.trial.tools import torch_tools

__all__ = ["EVALUATOR_FILES", "SNAPSHOT_FRACTIONS", "evaluator_hashes", "main"]

PAUSE = 1.0
"""Seconds between two looks at a process that is waited for."""


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0 when every trial has a result, 1 for a failure in one line; argparse exits with 2."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.aggregate and given.suite is None:
        parser.error("--suite is needed, except with --aggregate")
    if not given.aggregate and not given.resume and given.plan is None:
        parser.error("--plan is needed, except with --resume or --aggregate")
    if given.aggregate and (given.resume or given.dry_run):
        parser.error("--aggregate only ranks; it goes with neither --resume nor --dry-run")
    if given.aggregate and (given.suite or given.transfer or given.plan or given.existing or given.device):
        parser.error("--aggregate ranks what is in --out; it takes no suite, plan, checkpoint or device")
    if given.resume and given.existing and given.plan is None:
        parser.error("--resume goes on with what is in --out; --existing begins something only beside --plan")
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> int:
    if given.wait_pid is not None:
        wait_for(given.wait_pid, is_running, lambda: time.sleep(PAUSE))
    if given.aggregate:
        return _show(aggregate(given.out))
    study = Study(
        given.out, open_suite(given.suite), open_suite(given.transfer) if given.transfer is not None else None,
        given.root.resolve(),
    )  # fmt: skip
    jobs = plan_jobs(study, given.plan, given.existing or []) if given.plan is not None else []
    if given.resume:
        return _resume(study, jobs, given)
    if given.dry_run:
        for job in jobs:
            say(describe(job))
        return 0
    with only_training():
        return _show(run_study(study, jobs, torch_tools(given.device, say=say), given.out.parent))


def _resume(study: Study, jobs: list[TrialJob], given: argparse.Namespace) -> int:
    if given.dry_run:
        for job in unfinished_jobs(study):
            say(f"{job.id}: would go on")
        for job in unbegun_jobs(study, jobs):
            say(describe(job))
        return 0
    with only_training():
        return _show(resume_study(study, torch_tools(given.device, say=say), given.out.parent, jobs))


def _show(ranked: Ranked) -> int:
    for line in ranked.lines:
        if line["status"] == "failed":
            say(f"{line['id']}: failed: {line['error']}")
        else:
            say(f"{line['id']}: objective {line['objective']}")
    for fault in ranked.faults:
        say_aside(str(fault))
    return 1 if ranked.faults else 0


def is_running(pid: int) -> bool:
    """Whether a process of that number is there, whoever owns it."""
    with suppress(ProcessLookupError):
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except OverflowError:
            return False
        return True
    return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kev.experiment", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the study's directory, runs/<name>")
    parser.add_argument("--suite", type=Path, metavar="DIR", help="what is trained on and first judged by")
    parser.add_argument("--transfer", type=Path, metavar="DIR", help="a suite that is never trained on")
    parser.add_argument("--plan", type=Path, metavar="FILE", help="the plan, a list of 1 to 8 trials")
    parser.add_argument("--existing", type=Path, action="append", metavar="PATH",
                        help="a checkpoint or trial that is only scored; may be repeated")  # fmt: skip
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="the checkout (here)")
    parser.add_argument("--device", choices=("cpu", "mps", "cuda"), help="where to compute (the best there is)")
    parser.add_argument("--wait-pid", type=int, metavar="PID", help="begin when that process is gone")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the trials that have not ended; with --plan, begin those that have not begun",
    )
    parser.add_argument("--aggregate", action="store_true", help="only rank what is there")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
