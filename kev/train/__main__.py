"""Train one trial of a plan by hand; `torchrun --nproc-per-node N -m kev.train ...` does it on several ranks."""

import argparse
from pathlib import Path

from kev.console import run
from kev.errors import UsageError
from kev.procedure.training import only_training
from kev.records.plan import read_plan
from kev.suite import open_suite
from kev.train import run_training
from kev.train.mix import trial_records
from kev.train.settings import TrainingOptions, trial_options


def main(arguments: list[str] | None = None) -> int:
    """Parse and train; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kev.train", description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="a plan, experiments/**/<name>.json")
    parser.add_argument("--index", type=int, default=0, help="which of its trials, from 0")
    parser.add_argument("--suite", type=Path, required=True, help="a frozen suite, evals/<name>")
    parser.add_argument("--root", type=Path, help="where a plan's data and anchor lie; here, unless said")
    parser.add_argument("--out", type=Path, required=True, help="the trial's directory")
    parser.add_argument("--resume", action="store_true", help="go on from the newest complete resume point")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--threads", type=int, help="threads of torch; the cores given, unless said")
    parser.add_argument(
        "--save-every-minutes", type=float, default=TrainingOptions().save_every_minutes, help="0 keeps no resume point"
    )
    return run(lambda: _train_alone(parser.parse_args(arguments)))


def _train_alone(options: argparse.Namespace) -> int:
    with only_training():
        return _train(options)


def _train(options: argparse.Namespace) -> int:
    plan = read_plan(options.plan)
    if not 0 <= options.index < len(plan):
        raise UsageError(f"{options.plan}: has {len(plan)} trials, and --index {options.index} is none of them")
    config, suite, root = plan[options.index], open_suite(options.suite), options.root or Path.cwd()
    report = run_training(
        config,
        trial_records(config, suite, root),
        options.out,
        resume=options.resume,
        options=trial_options(
            config,
            suite,
            root,
            device=options.device,
            threads=options.threads,
            save_every_minutes=options.save_every_minutes,
        ),
    )
    return 0 if report.checkpoint.exists() else 1


if __name__ == "__main__":
    raise SystemExit(main())
