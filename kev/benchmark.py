"""Read a partition, or a file of records, with a checkpoint or a remote endpoint.

    python -m kev.benchmark --run runs/x/00-trial-0/checkpoint --suite evals/decision-v1 --out runs/r41-read
    python -m kev.benchmark --remote http://127.0.0.1:8008 --data mine.jsonl --out runs/mine

It writes predictions.jsonl as it goes, then rows.json, rejected.json if anything was refused, and last report.json.
A read that died is continued by the same command, if checkpoint, records, options and evaluator files are the same;
it says so, here and in the report. A finished read is never replaced.
"""

import argparse
import json
import math
import os
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from kev.clock import SystemClock
from kev.console import run
from kev.predictors.prediction import Predictor
from kev.predictors.purse import Purse, Tariff
from kev.predictors.retries import RetryPolicy
from kev.procedure.reading_tests import check_test_read, relative_to_here
from kev.reads.attempt import Options, read, refuse_finished
from kev.reads.records import Selection, select_file, select_partition
from kev.suite import open_suite
from kev.text import visible

if TYPE_CHECKING:
    from kev.predictors.checkpoint import CheckpointScorer
    from kev.predictors.vllm import VllmScorer

TOKEN_VARIABLE = "KEV_REMOTE_API_KEY"
USAGE = "usage.json"
BATCH = 32
OF_REMOTE = {"remote_model": "kev-latest", "remote_concurrency": 1, "retry_seconds": 300.0, "price": None,
             "budget": None, "max_calls": None}  # fmt: skip
"""Options that only a remote read has, and what they are where nobody gives them."""


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0 for a finished read, 1 for a failure in one line; argparse exits with 2."""
    parser = _parser()
    given = parser.parse_args(arguments)
    problem = _check_options(given)
    if problem:
        parser.error(problem)
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> int:
    selection = _selection(given)
    refuse_finished(given.out)
    predictor, purse = _predictor(given, selection)
    try:
        report = read(predictor, selection, given.out, _say, options=Options(given.date_facts, given.rotations),
                      purse=purse)  # fmt: skip
    finally:
        predictor.close()
    shown = {key: report[key] for key in ("objective", "clean", "coverage")}
    print(json.dumps(shown, indent=2, ensure_ascii=False))
    return 0


def _say(line: str) -> None:
    print(visible(line), file=sys.stderr if line.startswith("!!!") else sys.stdout, flush=True)


def _selection(given: argparse.Namespace) -> Selection:
    if given.allow_test:
        check_test_read(Path.cwd(), relative_to_here(given.out), owner_allows=given.owner_allows)
    if given.data is not None:
        return select_file(given.data)
    return select_partition(open_suite(given.suite), "test" if given.allow_test else given.split,
                            allow_test=given.allow_test)  # fmt: skip


def _predictor(given: argparse.Namespace, selection: Selection) -> tuple[Predictor, Purse | None]:
    if given.remote is None:
        from kev.predictors.local import LocalPredictor

        scorer = _scorer(given, selection)
        for remark in scorer.remarks:
            _say(f"!!! {remark}")
        return LocalPredictor(scorer, batch=given.batch), None
    from kev.predictors.remote import Endpoint, RemotePredictor

    endpoint = Endpoint(
        given.remote, given.remote_model, os.environ.get(TOKEN_VARIABLE) or None, given.remote_concurrency
    )
    tariff = Tariff(given.price, given.budget, given.max_calls)
    purse = Purse(given.out / USAGE, given.remote_model, tariff, SystemClock())
    return RemotePredictor(endpoint, purse, RetryPolicy(total=given.retry_seconds)), purse


def _scorer(given: argparse.Namespace, selection: Selection) -> "CheckpointScorer | VllmScorer":
    if given.backend == "vllm":
        from kev.predictors.vllm import open_vllm

        return open_vllm(given.run, manifest=selection.manifest)
    from kev.predictors.checkpoint import CheckpointScorer

    return CheckpointScorer(given.run, manifest=selection.manifest, device=given.device)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kev.benchmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--run", metavar="CHECKPOINT", help="a checkpoint directory, or a Hub id[@revision]")
    who.add_argument("--remote", metavar="URL", help="a System One endpoint")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", type=Path, metavar="DIR", help="a frozen suite")
    what.add_argument("--data", type=Path, metavar="FILE.jsonl", help="a file of records")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the read goes")
    parser.add_argument("--split", default="development", choices=("development", "calibration", "train"),
                        help="the partition (development)")  # fmt: skip
    parser.add_argument("--allow-test", action="store_true", help="read the test partition instead")
    parser.add_argument("--owner-allows", default="", metavar="NAME",
                        help="the owner's word: DIR's name, where no registered round reads this test")  # fmt: skip
    parser.add_argument("--device", choices=("cpu", "mps", "cuda"), help="where to compute (the best there is)")
    parser.add_argument("--backend", choices=("torch", "vllm"), default="torch",
                        help="what runs the backbone: torch exactly, vLLM faster on a GPU (torch)")  # fmt: skip
    parser.add_argument("--batch", type=_count, default=BATCH, metavar="N", help="records in one pass (32)")
    parser.add_argument("--date_facts", "--date-facts", action="store_true",
                        help="add a note to each state: how far apart its dates are")  # fmt: skip
    parser.add_argument("--rotations", type=_count, default=1, metavar="N",
                        help="average each choice over its first N cyclic orders (1)")  # fmt: skip
    remote = parser.add_argument_group("remote reads", f"The bearer token is read from {TOKEN_VARIABLE}.")
    remote.add_argument("--remote-model", metavar="NAME", help="the model asked for (kev-latest)")
    remote.add_argument("--remote-concurrency", type=_count, metavar="N",
                        help="calls at the same time; fewer while the endpoint says it is busy (1)")  # fmt: skip
    remote.add_argument("--retry-seconds", type=_seconds, metavar="S",
                        help="the most that tries of one request may take together (300)")  # fmt: skip
    remote.add_argument("--price", type=_money, metavar="USD", help="listed price of a million input tokens")
    remote.add_argument("--budget", type=_money, metavar="USD", help="what the read may cost; needs --price")
    remote.add_argument("--max-calls", type=_count, metavar="N", help="how many calls the read may make")
    parser.set_defaults(**OF_REMOTE)
    return parser


def _check_options(given: argparse.Namespace) -> str | None:
    if given.budget is not None and given.price is None:
        return "--budget needs --price: without one nothing is known of the cost"
    if given.data is not None and (given.allow_test or given.split != "development"):
        return "--split and --allow-test belong to --suite"
    of_remote = [name for name, value in OF_REMOTE.items() if getattr(given, name) != value]
    if given.remote is None and of_remote:
        return f"--{of_remote[0].replace('_', '-')} belongs to --remote"
    if given.remote is not None and (given.device is not None or given.batch != BATCH):
        return "--device and --batch belong to --run: an endpoint computes where it is"
    if given.owner_allows and not given.allow_test:
        return "--owner-allows belongs to --allow-test"
    if given.backend == "vllm" and (given.remote is not None or given.device not in (None, "cuda")):
        return "--backend vllm belongs to --run, on a GPU"
    return None


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("is at least 1")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError("is a number of seconds")
    return value


def _money(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount in US dollars") from None
    if not value.is_finite() or value < 0:
        raise argparse.ArgumentTypeError("is an amount in US dollars from zero up")
    return value


if __name__ == "__main__":
    raise SystemExit(main())
