"""Set the temperature that a checkpoint ships with.

    python scripts/calibrate_checkpoint.py --run CKPT --rows runs/x/rows.json[:source,source]
    python scripts/calibrate_checkpoint.py --run CKPT --rows runs/x/rows.json --temperature 1.2 --reason "..."

Rows must be held out from everything the checkpoint was trained on. `head.pt` is changed in place, every other value
in it kept; `head.json` beside it says the same without tensors.
"""

import argparse
import math
import sys
from pathlib import Path

from kev.calibrate import FitRows, Request, calibrate
from kev.console import failures_of_files, run, say


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="directory of the checkpoint")
    parser.add_argument("--rows", action="append", required=True, metavar="PATH[:SOURCE,SOURCE]", help="rows to fit on")
    parser.add_argument("--exclude_rows", "--exclude-rows", action="append", type=Path, default=[], metavar="PATH",
                        help="rows whose records are left out")  # fmt: skip
    parser.add_argument("--transfer", type=Path, metavar="ROWS", help="rows that are only reported on")
    parser.add_argument("--temperature", type=float, help="take this temperature instead of fitting one")
    parser.add_argument("--reason", help="why the temperature is set by hand")
    parser.add_argument("--allow-in-distribution", action="store_true", help="fit on rows that are not held out")
    parser.add_argument("--folds", type=int, default=5, help="folds of the cross-validation (5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cross-validation (0)")
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout that holds evals/ (here)")
    given = parser.parse_args()
    if given.temperature is not None:
        if not (given.reason or "").strip():
            parser.error("--temperature needs a --reason")
        if not (math.isfinite(given.temperature) and given.temperature > 0):
            parser.error("--temperature is a number above 0")
    return run(lambda: _calibrate(given))


def _calibrate(given: argparse.Namespace) -> int:
    with failures_of_files():
        rows = tuple(FitRows.parse(text) for text in given.rows)
        request = Request(
            given.run, rows, tuple(given.exclude_rows), given.transfer, given.temperature, given.reason,
            given.allow_in_distribution, given.folds, given.seed, given.root,
        )  # fmt: skip
        calibrate(request, say)
    return 0


if __name__ == "__main__":
    sys.exit(main())
