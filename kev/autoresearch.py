"""Rounds one after the other, and looking across studies.

python -m kev.autoresearch session SPEC [SPEC ...]                      rounds under one authorization, unattended
python -m kev.autoresearch leaderboard                                  every trial with a result, ranked
python -m kev.autoresearch compare --studies A,B --reference runs/S/T   trials against a reference
python -m kev.autoresearch release-check --study NAME                   is any recipe ready to be proposed
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from kev.clock import SystemClock
from kev.compare import Compared, compare_studies, parse_statistic
from kev.console import failures_of_files, run, say_aside
from kev.errors import KevError, UsageError
from kev.leaderboard import read_leaderboard, write_leaderboard
from kev.release_check import release_check
from kev.text import visible


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0, or what a command says; an expected failure is printed as one line and gives 1."""
    options = _parser().parse_args(arguments)

    def command() -> int:
        with failures_of_files():
            return int(options.command(options) or 0)

    return run(command)


def run_session(options: argparse.Namespace) -> int:
    """Run rounds under the authorization of a session; 0 if all are done, 3 if any was blocked or not begun."""
    # The engine and its provider, which the rest of this command does without.
    from kev.session.unattended import run_unattended

    outcome = run_unattended(options)
    if options.json:
        _print_json(outcome.to_json())
    return 0 if not (outcome.blocked or outcome.stopped) else 3


def show_leaderboard(options: argparse.Namespace) -> None:
    """Write the leaderboard's two files and say where they are."""
    runs = options.root / "runs"
    board = read_leaderboard(runs)
    _, page = write_leaderboard(runs, board, SystemClock())
    if options.json:
        _print_json({
            "ranked": [entry.row for entry in board.ranked],
            "apart": [{**entry.row, "reason": entry.apart} for entry in board.apart],
            "damaged": [str(error) for error in board.damaged],
        })  # fmt: skip
        return
    _warn(board.damaged)
    for entry in board.apart:
        print(f"not ranked: {visible(entry.id)}: {entry.apart}")
    number = len(board.entries)
    print(f"{number} trial{'s' * (number != 1)} -> {visible(str(page))}")


def show_comparison(options: argparse.Namespace) -> None:
    """Print trials against the reference, with the statistic that was used."""
    statistic = parse_statistic(options.average, options.samples, options.seed)
    studies = [name for name in options.studies.split(",") if name]
    if not studies or any(Path(name).name != name for name in studies):
        raise UsageError("--studies takes names of studies with commas between them")
    runs = options.root / "runs"
    compared, damaged = compare_studies(runs, studies, options.root / options.reference, statistic)
    if options.json:
        _print_json({
            "reference": str(options.reference),
            "statistic": {"metric": "acc", "rows": "transfer", "average": statistic.average,
                          "samples": statistic.samples, "seed": statistic.seed},
            "trials": [trial.to_json() for trial in compared],
            "damaged": [str(error) for error in damaged],
        })  # fmt: skip
        return
    _warn(damaged)
    print(f"delta: {statistic}, minus {visible(str(options.reference))}")
    print("\n".join(_comparison_lines(compared)))


def show_release_check(options: argparse.Namespace) -> None:
    """Print one verdict line per recipe."""
    if Path(options.study).name != options.study:
        raise UsageError("--study takes the name of a study")
    verdicts, damaged = release_check(options.root / "runs", options.study)
    if options.json:
        _print_json({
            "study": options.study,
            "recipes": [verdict.to_json() for verdict in verdicts],
            "damaged": [str(error) for error in damaged],
        })  # fmt: skip
        return
    _warn(damaged)
    for verdict in verdicts:
        print(visible(str(verdict)))


def _comparison_lines(compared: list[Compared]) -> list[str]:
    heads = ["trial", "dev acc", "transfer acc", "Brier", "conf-err", "both correct", "delta", "95 %"]
    table = [heads]
    for one in compared:
        interval = "[{:+.4f}, {:+.4f}]".format(*one.ci95) if one.ci95 else "-"
        delta = "-" if one.delta is None else f"{one.delta:+.4f}"
        table.append([visible(one.trial), *map(_cell, one.figures.values()), delta, interval])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    for one in compared:
        tasks = ", ".join(f"{task} {_cell(value)}" for task, value in one.tasks.items())
        notes = [note for note in (one.missing and f"no delta: {one.missing}", one.knobs, tasks) if note]
        lines += [visible(f"{one.trial}: {note}") for note in notes]
    return lines


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _warn(damaged: list[KevError]) -> None:
    for error in damaged:
        say_aside(f"!!! {error}")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kev.autoresearch", description="Look across studies.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, command: Any, words: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=words, description=words)
        sub.add_argument("--root", type=Path, default=Path(), help="the checkout (here)")
        sub.add_argument("--json", action="store_true", help="print data instead of text")
        sub.set_defaults(command=command)
        return sub

    session = add("session", run_session, "run registered rounds, one after the other, under one authorization")
    session.add_argument("specs", nargs="+", type=Path, metavar="SPEC", help="experiments/rounds/r<N>.json")
    session.add_argument("--session", metavar="NAME", help="the session that pays, where several are open")
    session.add_argument("--spend-start", type=float, metavar="USD", help="the meter when the session began")
    session.add_argument("--spend-cap", type=float, metavar="USD", help="its authorization; opens it if none is open")
    session.add_argument("--stagger", type=float, default=60.0, metavar="S", help="seconds between starts (60)")
    session.add_argument("--interval", type=float, default=120.0, metavar="S", help="seconds between passes (120)")
    session.add_argument("--dry-run", action="store_true", help="say what each round would cost; launch nothing")
    add("leaderboard", show_leaderboard, "rank every trial that has a result")
    compare = add("compare", show_comparison, "compare trials with a reference on its transfer rows")
    compare.add_argument("--studies", required=True, metavar="A,B", help="studies whose trials are compared")
    compare.add_argument(
        "--reference", required=True, type=Path, metavar="runs/STUDY/TRIAL", help="the trial compared with"
    )
    compare.add_argument(
        "--average", choices=("micro", "macro"), default="micro", help="over questions, or tasks (micro)"
    )
    compare.add_argument("--samples", type=int, default=2000, help="resamples (2000, as in registered rounds)")
    compare.add_argument("--seed", type=int, default=0, help="seed of the resamples (0)")
    check = add("release-check", show_release_check, "say of each recipe of a study whether it may be proposed")
    check.add_argument("--study", required=True, help="the study")
    return parser


if __name__ == "__main__":
    sys.exit(main())
