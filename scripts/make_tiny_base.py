"""Make a small random base on this machine.

python scripts/make_tiny_base.py --out bases/tiny --suite evals/decision-v1

The tokenizer is trained on the suite's training records, or with --problems on the word problems that agents of the
bench train on; the same arguments give the same bytes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kev.autorl.evaluators.arithmetic import prompt_of
from kev.autorl.evaluators.problems import training_problems
from kev.baseline import read_records
from kev.data.render import render
from kev.errors import KevError, UsageError
from kev.suite import open_suite


def texts_of(suite: Path) -> Iterator[str]:
    """Everything that a model reads of a suite's training records."""
    for record in read_records(open_suite(suite), "train"):
        yield render(record.state)
        for question in record.questions.values():
            yield from (render(question.instructions), *question.options)


def problem_texts() -> Iterator[str]:
    """The training problems of the arithmetic task, as they are asked and answered."""
    for problem in training_problems(2000, 1):
        yield f"{prompt_of(problem)} {problem.answer}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the base that the command line describes and print its hash."""
    parser = argparse.ArgumentParser(prog="make_tiny_base", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a directory that does not exist")
    parser.add_argument("--suite", type=Path, help="the suite whose texts the tokenizer is trained on")
    parser.add_argument("--problems", action="store_true", help="train it on arithmetic word problems")
    parser.add_argument("--kind", choices=("attention", "hybrid"), default="attention")
    parser.add_argument("--hidden", type=int, default=128, help="width, a multiple of 32 (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--vocabulary", type=int, default=1024, help="most tokens (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        if options.out.exists():
            raise UsageError(f"{options.out}: exists already; a base that something was trained on must not change")
        if options.suite and options.problems:
            raise UsageError("--suite or --problems, not both")
        if options.hidden < 32 or options.hidden % 32 or options.layers < 1:
            raise UsageError("--hidden is a multiple of 32 and --layers at least 1")
        from kev.model.tiny_base import WORDS, base_sha256, make_tiny_base

        base = make_tiny_base(
            options.out,
            kind=options.kind,
            texts=problem_texts() if options.problems else texts_of(options.suite) if options.suite else (WORDS,),
            vocabulary=options.vocabulary,
            hidden=options.hidden,
            layers=options.layers,
            seed=options.seed,
        )
        print(f"{base}: {options.kind}, {options.layers} layers of {options.hidden}, sha256 {base_sha256(base)}")
    except KevError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
