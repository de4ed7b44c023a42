"""A section of `reports/summary.md`: written as the format has it, read however people and agents write it.

Reading takes half-width and full-width punctuation, any indentation, and sections whose line breaks were lost; what
stands in a fenced block is code, never a field.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any

from kev.text import visible

TITLE = "# 运行总结"
STATUS, SCORE, TYPE, SETTINGS = "状态", "Score", "训练类型", "关键配置"
WHAT, WHY, PROGRESS, CODE, SNIPPET = "做了什么", "为什么", "问题/进步", "关键代码", "代码片段（上下文）"
LABELS = (STATUS, SCORE, TYPE, SETTINGS, WHAT, WHY, PROGRESS, CODE, SNIPPET)
SUCCESS, FAILURE = "✅ 成功", "❌ 失败"
_PATTERNS = {SNIPPET: r"代码片段\s*[（(]?\s*上下文\s*[）)]?", PROGRESS: r"问题\s*[/／]\s*进步"}
_HEADER = re.compile(
    # Every repetition is bounded: agents write this text, and whoever looks must not wait for it.
    r"#{1,6}[ \t]{0,9}Iteration[ \t]{0,9}(?P<number>\d{1,9})[ \t]{0,9}[(（](?P<time>[^,，、()（）\n]{0,99})"
    r"[,，、]\s{0,9}耗时\s{0,9}[:：]?(?P<duration>[^()（）\n]{0,99}?)(?:s|秒)?\s{0,9}[)）]"
)
_LOOSE_HEADER = re.compile(r"^#{1,6}[ \t]*Iteration\b[^\n]*", re.M)
_NAMES = "|".join(_PATTERNS.get(label, re.escape(label)) for label in LABELS)
_LABEL = re.compile(
    # In bold anywhere, for line breaks get lost; without it only behind a bullet that begins a line.
    rf"(?:[-*•+][ \t]+)?\*\*[ \t]*(?P<bold>{_NAMES})[ \t]*(?:\*\*[ \t]*[:：]|[:：][ \t]*\*\*)"
    rf"|^[-*•+][ \t]+(?P<plain>{_NAMES})[ \t]*[:：]",
    re.M,
)
LONGEST_LINE = 400
"""Characters of a status or score line that are read."""
MOST_ROUNDS = 1000
_NUMBER = r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_SCORE_LINE = re.compile(
    rf"^\s*(?P<score>{_NUMBER}|[^|｜]*?)\s*[|｜]\s*Improvement\s*[:：]\s*(?P<improvement>[^|｜]*?)\s*[|｜]\s*"
    r"Best\s*[:：]\s*(?P<best>[^()（）|｜]*?)\s*(?:[(（]\s*iter\s*(?P<iteration>\d+)\s*[)）])?\s*$",
    re.S,
)
_EXIT = re.compile(r"exit[_ ]code\s*[=＝:：]?\s*(-?\d+)", re.I)


@dataclass(frozen=True, slots=True)
class Field:
    """What a label is followed by, the line it is on, and whether the label began its line."""

    text: str
    line: int
    begins_line: bool


@dataclass(frozen=True, slots=True)
class ScoreFacts:
    """The three parts of the score line; None where one is no number."""

    score: float | None
    improvement: float | None
    best: float | None
    best_iteration: int | None


@dataclass(frozen=True)
class Section:
    """One round as it is written. `fields` has the first of each label, in the order in which they come."""

    iteration: int
    time: str
    duration: float | None
    line: int
    begins_line: bool
    start: int
    """Characters before it."""
    fields: dict[str, Field] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    """Text that stands before the first label, or behind a label that was there already."""

    def text(self, label: str) -> str:
        return self.fields[label].text if label in self.fields else ""

    def line_of(self, label: str) -> int:
        return self.fields[label].line if label in self.fields else self.line

    @property
    def status(self) -> str | None:
        """`success`, `failure`, or None where it says both or neither."""
        good = any(mark in self.text(STATUS) for mark in ("✅", "成功"))
        bad = any(mark in self.text(STATUS) for mark in ("❌", "失败"))
        return None if good == bad else "success" if good else "failure"

    @property
    def exit_code(self) -> int | None:
        return exit_code_in(self.text(STATUS)[:LONGEST_LINE])

    @cached_property
    def score_facts(self) -> ScoreFacts | None:
        """None where the line does not have its three parts."""
        found = _SCORE_LINE.match(self.text(SCORE)[:LONGEST_LINE])
        if found is None:
            return None
        best = found["iteration"]
        return ScoreFacts(
            number(found["score"]), number(found["improvement"]), number(found["best"]), int(best) if best else None
        )

    @cached_property
    def score_texts(self) -> tuple[str, str, str]:
        """The three parts as they are written; empty where the line does not have them."""
        found = _SCORE_LINE.match(self.text(SCORE)[:LONGEST_LINE])
        return ("", "", "") if found is None else (found["score"].strip(), found["improvement"], found["best"])

    @property
    def train_type(self) -> str:
        return self.text(TYPE).strip()

    def to_json(self) -> dict[str, Any]:
        """What can be read of it; None where something cannot."""
        facts = self.score_facts or ScoreFacts(None, None, None, None)
        return {
            "iteration": self.iteration, "line": self.line, "time": self.time, "duration_s": self.duration,
            "status": self.status, "exit_code": self.exit_code, "score": facts.score,
            "improvement": facts.improvement, "best": facts.best, "best_iteration": facts.best_iteration,
            "train_type": self.train_type, "settings": self.text(SETTINGS), "what": self.text(WHAT),
            "why": self.text(WHY), "progress": self.text(PROGRESS),
        }  # fmt: skip

    def setting(self, name: str) -> str | None:
        """The stated value of a setting, its `=` in either width or lost."""
        found = setting_pattern(name).search(self.text(SETTINGS))
        return None if found is None else (found["value"] or found["bare"]).rstrip("。.")


@dataclass(frozen=True, slots=True)
class Journal:
    """`summary.md` taken apart. `loose` are the lines of headings that cannot be read as a round's."""

    sections: list[Section]
    has_title: bool
    loose: list[tuple[int, str]]


def setting_pattern(name: str) -> re.Pattern[str]:
    """What finds a setting; a value that stands right behind its name has to look like one."""
    return re.compile(
        rf"(?<![A-Za-z_]){re.escape(name)}\s*(?:[=＝:：]\s*(?P<value>[^\s,，;；、]+)"
        r"|(?P<bare>(?:[+-]?\d|unknown|True|False|None)[^\s,，;；、]*))"
    )


def exit_code_in(text: str) -> int | None:
    """The exit code that a status or a line of run.log states."""
    found = _EXIT.search(text)
    return None if found is None else int(found[1])


class Stated(float):
    """A figure as it is written, with the number of its decimals: how far it may have been rounded."""

    decimals: int

    @classmethod
    def of(cls, text: str) -> "Stated":
        figure = cls(text)
        exponent = Decimal(text).as_tuple().exponent
        figure.decimals = max(0, -exponent) if isinstance(exponent, int) else 0
        return figure


def number(text: str) -> Stated | None:
    """A figure as people write it, or None."""
    found = re.fullmatch(_NUMBER, text.strip().replace("＋", "+").replace("－", "-").replace("−", "-"), re.I)
    return None if found is None else Stated.of(found[0])


def read_journal(text: str) -> Journal:
    """The sections in `text`, which has its own line ends."""
    masked = _without_code(text)
    lines = _Lines(text)
    headers = list(islice(_HEADER.finditer(masked), MOST_ROUNDS))
    sections = []
    for at, header in enumerate(headers):
        end = headers[at + 1].start() if at + 1 < len(headers) else len(text)
        sections.append(_section(text, masked, lines, header, end))
    starts = {header.start() for header in headers}
    loose = [
        (lines.number(found.start()), found.group())
        for found in islice(_LOOSE_HEADER.finditer(masked), 2 * MOST_ROUNDS)
        if found.start() not in starts
    ]
    return Journal(sections, text.removeprefix("\ufeff").lstrip().startswith(TITLE), loose)


def compose_section(iteration: int, time: str, duration: int, fields: Mapping[str, str]) -> str:
    """A section with every field in order, ready to be appended."""
    lines = [f"## Iteration {iteration} ({time}, 耗时 {duration}s)"]
    lines += [f"- **{label}**:{'' if fields[label].startswith(chr(10)) else ' '}{fields[label]}" for label in LABELS]
    return "\n".join(lines) + "\n"


def minute_of(at: float) -> str:
    """Local time of Unix seconds, as a heading has it."""
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"


def unchanged_since(iteration: int) -> str:
    """What stands in place of code that did not change."""
    return f"与 Iteration {iteration} 相同，无变更"


def without_marks(text: str) -> str:
    """Prose on one line, in which nothing can be taken for a heading, a field or a block of code."""
    text = visible(" ".join(text.split()))
    text = _HEADER.sub(lambda found: found.group().lstrip("#").strip(), text.replace("```", "` ` `"))
    return _LABEL.sub(lambda found: found.group().replace("*", ""), text).strip()


def note(iteration: int, label: str, text: str) -> str:
    """Prose without a field of its own, on a quoted line."""
    where = f"Iteration {iteration}{' · ' if label else ''}{label}"
    return f"> {where}: {without_marks(text)}"


def block(head: str, lines: Sequence[str]) -> str:
    """A fenced piece of a file behind the line that says where it is from. Only fences inside it are broken."""
    body = "\n".join(visible(line.expandtabs(4)) for line in lines).replace("```", "` ` `")
    return f"{head}\n```python\n{body}\n```"


def _section(text: str, masked: str, lines: "_Lines", header: re.Match[str], end: int) -> Section:
    found = list(_LABEL.finditer(masked, header.end(), end))
    fields: dict[str, Field] = {}
    repeated = []
    loose = [text[header.end() : found[0].start() if found else end]]
    for at, label in enumerate(found):
        name = _name(label)
        stop = found[at + 1].start() if at + 1 < len(found) else end
        said = text[label.end() : stop].strip()
        if name in fields:
            repeated.append(name)
            loose.append(said)
            continue
        fields[name] = Field(said, lines.number(label.start()), lines.is_begun_by(label.start()))
    return Section(
        int(header["number"]), header["time"].strip(), number(header["duration"]), lines.number(header.start()),
        lines.is_begun_by(header.start()), header.start(), fields, tuple(repeated),
        tuple(each.strip() for each in loose if each.strip()),
    )  # fmt: skip


def _name(found: re.Match[str]) -> str:
    written = found["bold"] or found["plain"]
    return next(label for label in LABELS if re.fullmatch(_PATTERNS.get(label, re.escape(label)), written))


def _without_code(text: str) -> str:
    """`text` with every character of a closed block of code as a dot, its line ends left."""
    lines = text.split("\n")
    opened: int | None = None
    for at, line in enumerate(lines):
        mark = line.strip(" \t")
        if opened is None and mark.startswith("```"):
            opened = at
        elif opened is not None and mark == "```":
            lines[opened : at + 1] = ["·" * len(each) for each in lines[opened : at + 1]]
            opened = None
    return "\n".join(lines)


class _Lines:
    """Where the lines of a text begin."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def number(self, offset: int) -> int:
        """The line that a character is on, from 1."""
        return bisect_right(self._starts, offset)

    def is_begun_by(self, offset: int) -> bool:
        """Whether only blanks stand before a character on its line."""
        start = self._starts[self.number(offset) - 1]
        return not self._text[start:offset].strip("\ufeff \t")
