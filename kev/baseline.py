"""A baseline that any model must beat, as a read like any other: the linear model of `kev.linear`.

    python -m kev.baseline --train evals/decision-v1 --suite evals/skills-v1 --out runs/baseline-skills

`--train` may be given several times; without it every option is as likely. It writes the rows and the report of a
read, says in the report that it is a baseline, and never replaces a read.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from kev import files
from kev.console import failures_of_files, run
from kev.data.record import DataRecord, check_record
from kev.errors import DamagedFile, Refused
from kev.linear import LinearModel, fit
from kev.metrics import rows_from_json
from kev.predictors.distribution import answer_of_logits
from kev.predictors.prediction import Prediction
from kev.procedure.reading_tests import check_test_read, relative_to_here
from kev.reads.rows import rows_of
from kev.report import build_report
from kev.suite import Suite, open_suite

RUN = "baseline (linear, no language model)"


def answer(model: LinearModel, record: DataRecord) -> list[dict[str, Any]]:
    """The rows of one record, one for each question, as rows.json holds them."""
    answers = {name: answer_of_logits(model.logits(record, asked)) for name, asked in record.questions.items()}
    return rows_of(record, Prediction(answers, temperature=1.0))


def read_records(suite: Suite, split: str, *, allow_test: bool = False) -> list[DataRecord]:
    """The records of a partition. Raises what reading it raises, and DamagedFile for a record of another shape."""
    records = []
    for number, value in enumerate(suite.read_partition(split, allow_test=allow_test), start=1):
        try:
            records.append(DataRecord.model_validate(value))
            check_record(records[-1])
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise DamagedFile(suite.partition_path(split), f"record {number}: {reason}") from None
    return records


def read(model: LinearModel, suite: Suite, split: str, out: Path, *, allow_test: bool = False) -> dict[str, Any]:
    """Read a partition with `model` into `out`, which must not exist, and return the report.

    Writes `rows.json`, and last `report.json`. Raises Refused where `out` is there.
    """
    if out.exists():
        raise Refused(f"{out}: is there already; a read never replaces another")
    records = read_records(suite, split, allow_test=allow_test)
    rows = [row for record in records for row in answer(model, record)]
    coverage = {
        "requested_records": len(records),
        "requested_questions": len(rows),
        "evaluated_records": len(records),
        "evaluated_questions": len(rows),
        "rejected_records": 0,
        "truncated_records": 0,
    }
    found = build_report(rows_from_json(rows, str(out)), coverage)
    found |= {"suite_sha256": suite.sha256, "run": RUN, "split": split}
    files.write_atomic(out / "rows.json", files.dump_json(rows))
    files.write_atomic(out / "report.json", files.dump_json(found))
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0; an expected failure is printed as one line and gives 1."""
    parser = argparse.ArgumentParser(prog="python -m kev.baseline", description="Read a suite with a plain baseline.")
    parser.add_argument("--suite", type=Path, required=True, help="the suite to read")
    parser.add_argument("--train", type=Path, action="append", default=[], metavar="SUITE",
                        help="a suite whose train partition is fitted on; may be repeated")  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="where rows.json and report.json go")
    parser.add_argument("--split", default="development", help="the partition (development)")
    parser.add_argument("--allow-test", action="store_true", help="read the test partition")
    parser.add_argument("--owner-allows", default="", metavar="NAME",
                        help="the owner's word: DIR's name, where no registered round reads this test")  # fmt: skip
    given = parser.parse_args(arguments)
    if given.owner_allows and not given.allow_test:
        parser.error("--owner-allows belongs to --allow-test")
    return run(lambda: _read(given))


def _read(given: argparse.Namespace) -> int:
    with failures_of_files():
        model = fit(record for suite in given.train for record in read_records(open_suite(suite), "train"))
        split = "test" if given.allow_test else given.split
        if given.allow_test:
            check_test_read(Path.cwd(), relative_to_here(given.out), owner_allows=given.owner_allows)
        found = read(model, open_suite(given.suite), split, given.out, allow_test=given.allow_test)
    clean = found["clean"]
    print(f"{clean['n']} questions: acc {clean['acc']:.4f}, nll {clean['nll']:.4f}, ece {clean['ece']:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
