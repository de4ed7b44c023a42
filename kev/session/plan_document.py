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
    if not data.strip(b"\0 \r\n\t"):
        advice = f"put it back (git checkout {PLAN}), or remove it to begin a new one"
        raise DamagedFile(path, f"empty, as after a write that was cut off; {advice}")
    if b"\0" in data[:4]:
        raise DamagedFile(path, "UTF-16 text; save it as UTF-8; nothing is written over it")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise DamagedFile(path, "not UTF-8; nothing is written over it") from None
    files.write_atomic(path, with_session(text, report).encode())
    return path


def with_session(text: str, report: SessionReport) -> str:
    """`text` with the session's section and the rows of its rounds, each in place of what it had before."""
    # What is there keeps its own line ends, which may be mixed; what is added has those of most lines.
    end = "\r" if 2 * text.count("\r\n") > text.count("\n") else ""
    lines = text.split("\n")
    last = lines[-1]
    lines[-1] = f"{last}{end}" if last else ""
    lines = _with_section(_with_rows(lines, report.rounds, end), report, end)
    lines[-1] = lines[-1].removesuffix(end)
    return "\n".join(lines)


def _with_section(lines: list[str], report: SessionReport, end: str) -> list[str]:
    section = [f"{line}{end}" for line in to_markdown(report, level=2).rstrip("\n").split("\n")]
    title = re.compile(rf"## Session {re.escape(report.session)}(?: \(simulated money\))?\s*")
    outside = _outside_fences(lines)
    start = next((index for index in outside if title.fullmatch(lines[index])), None)
    if start is not None:
        stop = next((index for index in outside if index > start and _HEADING.match(lines[index])), len(lines))
    else:
        start = stop = next((index for index in outside if lines[index].rstrip() == RECORD), len(lines))
    before, after = lines[:start], lines[stop:]
    while before and not before[-1].strip():
        before.pop()
    while after and not after[0].strip():
        after.pop(0)
    return [*before, end, *section, end, *after]


def _with_rows(lines: list[str], rounds: Iterable[RoundResult], end: str) -> list[str]:
    lines = list(lines)
    rows = {each.round: f"{record_row(each)}{end}" for each in rounds}
    empty, heads, rule = end, f"{HEADS}{end}", f"{RULE}{end}"
    if not rows:
        return lines
    start = next((index for index in _outside_fences(lines) if lines[index].rstrip() == RECORD), None)
    if start is None:
        while lines and not lines[-1].strip():
            lines.pop()
        return [*lines, empty, f"{RECORD}{end}", empty, heads, rule, *rows.values(), empty]
    stop = next(
        (index for index in _outside_fences(lines) if index > start and _HEADING.match(lines[index])), len(lines)
    )
    table = [index for index in range(start, stop) if lines[index].startswith("|")]
    if not table:
        return [*lines[: start + 1], empty, heads, rule, *rows.values(), *lines[start + 1 :]]
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
