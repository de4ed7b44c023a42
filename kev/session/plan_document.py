"""Bringing PLAN.md up to a session: its summary as a section, and the row of each of its rounds in the Record table.

Whatever else the document holds stays as it is, byte for byte.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from kev import files
from kev.errors import DamagedFile, NotFound
from kev.session_report import SessionReport, to_markdown
from kev.session_report.structure import RoundResult

PLAN = "PLAN.md"
RECORD = "## Record"
HEADS = "| round | registered | arms read | chosen | verdict |"
RULE = "| --- | --- | --- | --- | --- |"

_HEADING = re.compile(r"#{1,2} ")


def update_plan(root: Path, report: SessionReport) -> Path:
    """Write the session into the plan of the checkout. Raises DamagedFile, or OSError."""
    path = root / PLAN
    try:
        data = files.read_bytes(path)
    except NotFound:
        data = b"# Plan\n"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise DamagedFile(path, "not UTF-8; nothing is written over it") from None
    files.write_atomic(path, with_session(text, report).encode())
    return path


def with_session(text: str, report: SessionReport) -> str:
    """`text` with the session's section and the rows of its rounds, each in place of what it had before."""
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(ending)
    lines = _with_rows(lines, report.rounds)
    return ending.join(_with_section(lines, report))


def _with_section(lines: list[str], report: SessionReport) -> list[str]:
    section = to_markdown(report, level=2).rstrip("\n").split("\n")
    title = re.compile(rf"## Session {re.escape(report.session)}(?: \(simulated money\))?\s*")
    outside = _outside_fences(lines)
    start = next((index for index in outside if title.fullmatch(lines[index])), None)
    if start is not None:
        end = next((index for index in outside if index > start and _HEADING.match(lines[index])), len(lines))
    else:
        start = end = next((index for index in outside if lines[index].rstrip() == RECORD), len(lines))
    before, after = lines[:start], lines[end:]
    while before and not before[-1].strip():
        before.pop()
    while after and not after[0].strip():
        after.pop(0)
    return [*before, "", *section, "", *after]


def _with_rows(lines: list[str], rounds: Iterable[RoundResult]) -> list[str]:
    lines = list(lines)
    rows = {each.round: record_row(each) for each in rounds}
    if not rows:
        return lines
    start = next((index for index in _outside_fences(lines) if lines[index].rstrip() == RECORD), None)
    if start is None:
        while lines and not lines[-1].strip():
            lines.pop()
        return [*lines, "", RECORD, "", HEADS, RULE, *rows.values(), ""]
    end = next(
        (index for index in _outside_fences(lines) if index > start and _HEADING.match(lines[index])), len(lines)
    )
    table = [index for index in range(start, end) if lines[index].startswith("|")]
    if not table:
        return [*lines[: start + 1], "", HEADS, RULE, *rows.values(), *lines[start + 1 :]]
    for index in table:
        named = re.match(r"\|\s*r?(\d+)\s*\|", lines[index])
        if named and int(named[1]) in rows:
            lines[index] = rows.pop(int(named[1]))
    return [*lines[: table[-1] + 1], *rows.values(), *lines[table[-1] + 1 :]]


def record_row(result: RoundResult) -> str:
    """The row of a round in the Record table."""
    registered = f"{result.registered_at:%Y-%m-%d %H:%M} UTC" if result.registered_at else "not registered"
    read = f"{result.arms_read} of {result.arms_tried}" if result.readout else "none yet"
    chosen = ", ".join(f"`{arm}`" if arm else f"{size}: none" for size, arm in result.candidates.items()) or "–"
    words = {True: "passed", False: "did not pass", None: "not decided"}
    verdict = ", ".join(f"{each.stage}: {words[each.passed]}" for each in result.verdicts) or "–"
    return f"| {result.round} | {registered} | {read} | {chosen} | {verdict} |"


def _outside_fences(lines: list[str]) -> list[int]:
    """The lines that stand in no fenced block; a fence that is never closed fences nothing in."""
    fences = [index for index, line in enumerate(lines) if line.lstrip().startswith(("```", "~~~"))]
    inside = {line for start, end in zip(fences[::2], fences[1::2], strict=False) for line in range(start, end + 1)}
    return [index for index in range(len(lines)) if index not in inside]
