"""The form of a section, whoever wrote it: rules 2, 7 and 10."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from kev.autorl.journal.findings import SUMMARY, Finding
from kev.autorl.journal.section import (
    CODE,
    LABELS,
    LONGEST_LINE,
    SCORE,
    SETTINGS,
    SNIPPET,
    STATUS,
    TYPE,
    WHY,
    Journal,
    Section,
)

MOST_SNIPPET, MOST_KEY_CODE = 40, 5
_SAME = re.compile(r"与\s*Iteration\s*(\d{1,9})\s*相同")
_RULES = {TYPE: 3, SETTINGS: 3, WHY: 5}
"""Rules that say of a field of their own that it may not be blank."""


def decode(data: bytes, file: str) -> tuple[str, list[Finding]]:
    """The text in `data` with plain line ends, as far as it is text, and what is not."""
    findings = []
    if data.startswith(b"\xef\xbb\xbf"):
        findings.append(Finding(10, "encoding", file, 1, "a byte order mark", "UTF-8"))
        data = data[3:]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        findings.append(Finding(10, "encoding", file, 1, "UTF-16", "UTF-8"))
        return data.decode("utf-16", errors="backslashreplace").replace("\r\n", "\n"), findings
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        findings.append(Finding(10, "encoding", file, line, f"byte {data[error.start]:#04x}", "UTF-8"))
        text = data.decode(errors="backslashreplace")
    for bad, name in (("\r", "carriage returns"), ("\0", "NUL")):
        if bad in text:
            findings.append(Finding(10, "encoding", file, text.count("\n", 0, text.index(bad)) + 1, name, "\\n"))
    if "\r" in text:
        text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return text, findings


def check_sequence(journal: Journal) -> Iterator[Finding]:
    """Rule 2: from 1 upward by 1."""
    for line, heading in journal.loose:
        yield Finding(2, "heading", SUMMARY, line, heading, "## Iteration N (YYYY-MM-DD HH:MM, 耗时 Xs)")
    before = 0
    for section in journal.sections:
        if section.iteration != before + 1:
            yield Finding(2, "sequence", SUMMARY, section.line, f"Iteration {section.iteration}", str(before + 1))
        before = max(before, section.iteration)


def check_form(section: Section) -> Iterator[Finding]:
    """Rule 10: every field is there, once, in its order, on a line of its own, and can be read."""
    if not section.begins_line or not all(each.begins_line for each in section.fields.values()):
        yield Finding(
            10, "line_breaks", SUMMARY, section.line, f"Iteration {section.iteration}", "a line for each field"
        )
    for label in LABELS:
        if not section.text(label):
            yield Finding(_RULES.get(label, 10), "missing", SUMMARY, section.line_of(label), "", label)
    for label in section.repeated:
        yield Finding(10, "repeated", SUMMARY, section.line_of(label), label, "once")
    there = [label for label in LABELS if label in section.fields]
    if list(section.fields) != there:
        yield Finding(10, "order", SUMMARY, section.line, ", ".join(section.fields), ", ".join(there))
    if not is_time(section.time):
        yield Finding(10, "time", SUMMARY, section.line, section.time, "YYYY-MM-DD HH:MM")
    if section.duration is None:
        yield Finding(10, "missing", SUMMARY, section.line, "", "耗时 Xs")
    for label, unread, form in (
        (SCORE, section.score_facts is None, "X | Improvement: X | Best: X (iter N)"),
        (STATUS, section.status is None, "✅ 成功 / ❌ 失败 (exit_code=X)"),
    ):
        if section.text(label) and unread:
            code = "score_line" if label == SCORE else "status"
            yield Finding(10, code, SUMMARY, section.line_of(label), section.text(label), form)


def check_code(section: Section) -> Iterator[Finding]:
    """Rule 7: at most one long piece of code, of at most 40 lines; and the few lines beside it are few."""
    blocks = blocks_in(section.text(SNIPPET))
    lines = max([block.count("\n") for block in blocks], default=_lines(section.text(SNIPPET)) - 1)
    if len(blocks) > 1 or lines > MOST_SNIPPET:
        said = f"{len(blocks)} blocks, {lines} lines"
        yield Finding(7, "snippet", SUMMARY, section.line_of(SNIPPET), said, f"1 block, {MOST_SNIPPET} lines")
    blocks = blocks_in(section.text(CODE))
    few = sum(map(_lines, blocks)) if blocks else _lines(section.text(CODE))
    if few > MOST_KEY_CODE:
        yield Finding(7, "key_code", SUMMARY, section.line_of(CODE), f"{few} lines", f"{MOST_KEY_CODE} lines")
    same = same_as(section)
    if same is not None and same >= section.iteration:
        said = f"Iteration {same}"
        yield Finding(7, "same_as", SUMMARY, section.line_of(SNIPPET), said, f"before Iteration {section.iteration}")


def blocks_in(text: str) -> list[str]:
    """The blocks of code in a text, without their fences."""
    found: list[str] = []
    opened: list[str] | None = None
    for line in text.split("\n"):
        mark = line.strip(" \t")
        if opened is None:
            opened = [] if mark.startswith("```") else None
        elif mark == "```":
            found.append("".join(f"{each}\n" for each in opened))
            opened = None
        else:
            opened.append(line)
    return found


def without_blocks(text: str) -> str:
    """What stands beside the blocks of code in a text."""
    for each in blocks_in(text):
        start, end = text.find("```"), text.find(each)
        text = text[:start] + text[end + len(each) :].lstrip(" \t").removeprefix("```")
    return text


def same_as(section: Section) -> int | None:
    """The round whose code a section says it has, unchanged."""
    found = _SAME.search(section.text(SNIPPET))
    return None if found is None else int(found[1])


def source_file(section: Section, before: Sequence[Section]) -> str:
    """The file that a section says it shows, its own or that of the round it refers to; empty where it names none."""
    seen: set[int] = set()
    current: Section | None = section
    while current is not None and current.iteration not in seen:
        seen.add(current.iteration)
        head = current.text(SNIPPET).partition("```")[0][:LONGEST_LINE]
        if (found := re.search(r"[\w./-]+\.py\b", head)) is not None:
            return found[0].removeprefix("code/")
        same = same_as(current)
        current = next((each for each in before if each.iteration == same), None)
    return ""


def is_time(text: str) -> bool:
    """Whether `text` is a moment to the minute."""
    try:
        # Local time, as the format has it: an offset would be a guess.
        return f"{datetime.strptime(text, '%Y-%m-%d %H:%M'):%Y-%m-%d %H:%M}" == text  # noqa: DTZ007
    except ValueError:
        return False


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))
