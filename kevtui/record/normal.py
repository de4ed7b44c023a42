"""The files of a night as they go into a bundle: plain UTF-8 text, with lines that end alike and nothing secret."""

import re
from collections.abc import Callable
from typing import Any

from kev import files
from kevtui.record.redaction import Redactor
from kevtui.replay.kinds import LINES, LOGS, WITHOUT_CONTENT, Kind

PRESENT_ONLY = WITHOUT_CONTENT | {Kind.RESULT}
"""Kinds of which the screen asks only whether they are there: predictions, measurements, weights."""

_UNREAD = "a line that could not be read\n"

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(/)")


def learn(kind: Kind, data: bytes, redactor: Redactor) -> None:
    """Show `redactor` everything that `normal` will give it."""
    _fold(kind, data, redactor.learn, redactor.learn)


def normal(kind: Kind, data: bytes, redactor: Redactor) -> bytes:
    """`data` as text without what is secret in it. What is damaged stays damaged, and is redacted as text."""
    found: list[bytes] = []

    def json(value: Any) -> None:
        if kind is Kind.UNITS:
            value = _of_unit(value)
        dump = files.dump_json_line if kind in LINES else files.dump_json
        found.append(dump(redactor.value(value)))

    def text(text: str) -> None:
        if kind is Kind.UNITS:
            text = _UNREAD if text.strip() else ""
        found.append(redactor.text(text).encode(errors="backslashreplace"))

    _fold(kind, data, json, text)
    return b"".join(found)


def _of_unit(value: Any) -> dict[str, Any]:
    """What is read of a line of the ledger; the rest says how the work was asked for, and on what."""
    if not isinstance(value, dict):
        return {}
    orders = value.get("orders")
    kept = {key: value[key] for key in ("event", "at", "unit", "outcome") if key in value}
    if isinstance(orders, dict):
        kept["orders"] = {
            unit: {"name": order.get("name")} for unit, order in orders.items() if isinstance(order, dict)
        }
    return kept


def _fold(kind: Kind, data: bytes, json: Callable[[Any], None], text: Callable[[str], None]) -> None:
    if kind in LOGS:
        # A progress bar ends its lines with a carriage return, and so may a key that lies in pieces.
        text(data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"))
        return
    for part in data.splitlines(keepends=True) if kind in LINES else [data]:
        try:
            json(files.parse_json(part))
        except (ValueError, RecursionError):
            # In a torn string a secret may stand in escapes, where no shape would find it.
            text(_ESCAPE.sub(_unescaped, part.decode(errors="replace")))


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1], 16) if match[1] else ord("/")
    return chr(code) if 0x20 <= code < 0x7F and chr(code) not in '"\\' else match.group()
