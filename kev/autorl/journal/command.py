"""`python -m kev.autorl journal append | check | repair`: the record of an agent's rounds, written, checked, corrected.

python -m kev.autorl journal append --submission 2 --what "..." --why "..."     from inside a run
python -m kev.autorl journal check WORKSPACE
python -m kev.autorl journal repair WORKSPACE --dry-run
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from kev import files
from kev.autorl.journal.checking import check_journal
from kev.autorl.journal.compose import Order
from kev.autorl.journal.facts import Facts, read_facts
from kev.autorl.journal.findings import LINES, SUMMARY, Finding, Language
from kev.autorl.journal.writing import append_round, repair_journal
from kev.autorl.journal.written import Written, read_or_none, read_written
from kev.autorl.workspace import Workspace, open_workspace
from kev.clock import SystemClock
from kev.console import Entry, parser_of, run_one_of, say, say_aside
from kev.errors import NotFound, UsageError

BREACHES = 3
"""The exit code of `check` where a rule is breached, and of `repair` where a breach is left."""
PROSE = ("what", "why", "progress", "code", "snippet")
MOST_STDIN = 1024 * 1024
_SAYS = {
    "clean": ("no breach in {}", "{}，未发现违规"),
    "breaches": ("{} in {}", "共 {}，{}"),
    "written": ("Iteration {} is written", "已写入 Iteration {}"),
    "there": ("Iteration {} is there already", "Iteration {} 已存在"),
    "kept": ("as it was: {}", "原文件：{}"),
    "dry": ("would make {}", "将作 {}"),
    "repaired": ("made {}; left: {}", "已作 {}；剩余 {}"),
    "nothing": ("nothing to put right", "无需修改"),
    "others": ("{} in earlier rounds: see `journal check`", "更早的轮次有 {}：见 `journal check`"),
}


_COUNTED = {
    "breach": ("breach", "breaches", "处违规"),
    "round": ("round", "rounds", "轮"),
    "change": ("change", "changes", "处修改"),
}


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0, 1 for what cannot be read or written, 3 where a rule is breached."""
    commands: list[Entry] = [
        ("append", "writes the next round, from the files of the run", _add_append, _append),
        ("check", "says every breach of the journal's rules", _add_check, _check),
        ("repair", "puts a journal right, and keeps what it was beside it", _add_repair, _repair),
    ]
    words = "The journal of an agent's rounds: reports/summary.md and summary.jsonl."
    return run_one_of(parser_of("python -m kev.autorl journal", words, commands), arguments)


def _add_common(parser: argparse.ArgumentParser, *, here: bool = False) -> None:
    default = os.environ.get("WORKSPACE") if here else None
    parser.add_argument(
        "workspace", type=Path, nargs="?" if here else None, default=default, metavar="WORKSPACE",
        help="a run's directory" + (" ($WORKSPACE)" if here else ", or a journal's file"),
    )  # fmt: skip
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of messages (en)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_append(parser: argparse.ArgumentParser) -> None:
    _add_common(parser, here=True)
    for name in PROSE:
        parser.add_argument(f"--{name}", default=None, metavar="TEXT")
    parser.add_argument("--submission", type=int, metavar="N", help="the submission that the round tells of")
    parser.add_argument("--iteration", type=int, metavar="N", help="its number; one that is there is not written again")
    parser.add_argument("--exit-code", type=int, metavar="N", help="of the round's training process")
    parser.add_argument("--source", default=None, metavar="FILE", help="what it trained with, where code/ has several")
    parser.add_argument("--stdin", action="store_true", help="read the options above from a JSON object")


def _add_check(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)


def _add_repair(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be changed, and change nothing")


def _append(options: argparse.Namespace) -> int:
    if options.workspace is None:
        raise UsageError("WORKSPACE: the directory of the run; inside one it is in the variable WORKSPACE")
    order = _order(options)
    done = append_round(open_workspace(Path(options.workspace)), order, SystemClock(), language=options.lang)
    if options.json:
        others = [each.to_json(options.lang) for each in done.others]
        print(
            files.dump_json({"iteration": done.iteration, "changed": done.changed, "others": others}).decode(), end=""
        )
        return 0
    say(_said("written" if done.changed else "there", options, done.iteration))
    if done.others:
        say_aside(_said("others", options, _count(len(done.others), "breach", options)))
    return 0


def _order(options: argparse.Namespace) -> Order:
    order = Order()
    if options.stdin:
        data = sys.stdin.buffer.read(MOST_STDIN + 1)
        if len(data) > MOST_STDIN:
            raise UsageError(f"standard input: more than {MOST_STDIN:,} bytes")
        try:
            order = Order.from_json(files.parse_json(data))
        except ValueError as error:
            raise UsageError(f"standard input: {error}") from None
    given = {each.name: getattr(options, each.name) for each in fields(Order)}
    return replace(order, **{name: value for name, value in given.items() if value is not None})


def _check(options: argparse.Namespace) -> int:
    found = open_journal(options.workspace)
    written = found.written
    if written.summary is None and written.lines is None:
        raise NotFound(f"{found.summary}: no such file; the run has no journal")
    breaches = check_journal(written, found.facts)
    sections = written.sections()
    if options.json:
        said = [each.to_json(options.lang) for each in breaches]
        value = {
            "rounds": [each.to_json() for each in sections],
            "breaches": said,
            "notes": found.facts.notes(options.lang),
        }
        print(files.dump_json(value).decode(), end="")
    else:
        report(found, breaches, options.lang)
        rounds = _count(len(sections), "round", options)
        breached = _count(len(breaches), "breach", options)
        say(_said("breaches", options, breached, rounds) if breaches else _said("clean", options, rounds))
    return BREACHES if breaches else 0


def _repair(options: argparse.Namespace) -> int:
    found = open_journal(options.workspace)
    if found.summary.name != SUMMARY:
        raise UsageError(f"{found.summary}: what is put right is a run's directory, or its {SUMMARY}")
    done = repair_journal(found.summary.parent, found.facts, language=options.lang, dry_run=options.dry_run)
    if options.json:
        left = [each.to_json(options.lang) for each in done.left]
        value = {"changes": done.changes, "kept": [str(path) for path in done.kept], "left": left}
        print(files.dump_json(value).decode(), end="")
        return BREACHES if done.left else 0
    for change in done.changes:
        say(change)
    for path in done.kept:
        say(_SAYS["kept"][options.lang == "zh"].format(path))
    report(found, done.left, options.lang)
    changes = _count(len(done.changes), "change", options)
    if options.dry_run:
        say(_said("dry", options, changes))
    elif done.changes:
        say(_said("repaired", options, changes, _count(len(done.left), "breach", options)))
    else:
        say(_said("nothing", options))
    return BREACHES if done.left else 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A journal and the facts beside it."""

    summary: Path
    written: Written
    facts: Facts


def report(opened: Opened, found: Sequence[Finding], language: Language) -> None:
    """Print findings as an editor can follow them, and what could not be compared."""
    for note in opened.facts.notes(language):
        say_aside(note)
    for each in found:
        path = opened.summary if each.file == SUMMARY else opened.summary.with_name(each.file)
        say(f"{path}{each.words(language).removeprefix(each.file)}")


def open_journal(path: Path) -> Opened:
    """The journal of a workspace, in a directory, or in a file, whatever that is called.

    Raises NotFound where there is neither a workspace nor a journal, and DamagedFile.
    """
    if path.is_file() and path.name not in (SUMMARY, LINES):
        facts = read_facts(Workspace(path.parent), SystemClock())
        return Opened(path, Written(read_or_none(path), read_or_none(path.with_name(LINES))), facts)
    if path.name in (SUMMARY, LINES):
        reports = path.parent
    elif (path / SUMMARY).exists() and not (path / "reports" / SUMMARY).exists():
        reports = path
    else:
        if not (path / "reports" / SUMMARY).exists() and not (path / "reports" / LINES).exists():
            open_workspace(path)
        reports = path / "reports"
    # A journal lies in the workspace's reports, or beside the files that it is held against.
    beside = Workspace(reports)
    workspace = beside if beside.scores.exists() or beside.run_meta.exists() else Workspace(reports.parent)
    return Opened(reports / SUMMARY, read_written(reports), read_facts(workspace, SystemClock()))


def _said(name: str, options: argparse.Namespace, *values: object) -> str:
    return _SAYS[name][options.lang == "zh"].format(*values)


def _count(number: int, what: str, options: argparse.Namespace) -> str:
    one, many, chinese = _COUNTED[what]
    return f"{number} {chinese}" if options.lang == "zh" else f"{number} {one if number == 1 else many}"
