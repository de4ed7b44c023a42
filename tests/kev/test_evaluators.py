"""The files that decide a score: all of those that a read and a verdict run through, but for a few that decide none."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kev.evaluators import HERE, is_evaluator_file

SCORING = ("kev.reads.attempt", "kev.trial.scoring", "kev.trial.gates", "kev.predictors.checkpoint",
           "kev.predictors.remote", "kev.predictors.vllm")  # fmt: skip
JUDGING = ("kev.rounds.comparison", "kev.rounds.criteria", "kev.rounds.panels", "kev.rounds.sides",
           "kev.rounds.temperatures", "kev.calibrate")  # fmt: skip

DECIDE_NOTHING = (
    "kev/__init__.py",
    "kev/budget.py",
    "kev/clock.py",
    "kev/console.py",
    "kev/document.py",
    "kev/errors.py",
    "kev/files",  # but for how a line becomes a value, which is an evaluator file
    "kev/git.py",
    "kev/placement.py",
    "kev/records",
    "kev/spelling.py",
    "kev/text.py",
    # Of a round: which reads there are and may be compared, not what they come to.
    "kev/rounds/__init__.py",
    "kev/rounds/checkout.py",
    "kev/rounds/checks",
    "kev/rounds/choice.py",
    "kev/rounds/guards.py",
    "kev/rounds/locked_args.py",
    "kev/rounds/once.py",
    "kev/rounds/overlap.py",
    "kev/rounds/places.py",
    "kev/rounds/pools.py",
    "kev/rounds/problems.py",
    "kev/rounds/registration.py",
    "kev/rounds/subject.py",
    "kev/rounds/templates.py",
)
"""Where bytes lie, what words are said, what is allowed: a change there refuses or fails, and moves no figure."""


def module_path(module: str) -> Path | None:
    place = HERE / module.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kev"):
            yield str(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith("kev"))


def reached(modules: tuple[str, ...]) -> set[str]:
    """Every module of kev that these import, at whatever depth and in whatever function."""
    found: set[Path] = set()
    left = list(modules)
    while left:
        path = module_path(left.pop())
        if path is not None and path not in found:
            found.add(path)
            left += imported(path)
    return {path.relative_to(HERE).as_posix() for path in found}


@pytest.mark.parametrize("modules", [SCORING, JUDGING], ids=["a read", "a verdict"])
def test_whatever_a_figure_runs_through_is_hashed_with_it(modules: tuple[str, ...]) -> None:
    others = {path for path in reached(modules) if not is_evaluator_file(path)}
    unknown = {path for path in others if not any(path == each or path.startswith(f"{each}/")
               for each in DECIDE_NOTHING)}  # fmt: skip
    assert not unknown, f"say of {sorted(unknown)} whether a change of it can move a score"


@pytest.mark.parametrize(
    "path",
    ["kev/files/json_values.py", "kev/torch_files.py", "kev/rounds/rowstore.py", "kev/records/suite.py",
     "kev/calibrate.py"],
)  # fmt: skip
def test_what_turns_bytes_into_records_and_rows_decides_a_score(path: str) -> None:
    assert (HERE / path).is_file() and is_evaluator_file(path)
