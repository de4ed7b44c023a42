"""Text from files, logs and remote answers is data: made safe here before any terminal sees it."""

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1 controls: escapes, carriage returns, bells, single-byte CSI
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators and direction changes, which reorder a line
    "\ud800-\udfff\ufeff\ufff9-\ufffb]"  # half a surrogate pair cannot be encoded; the rest is invisible
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """`text` on one line with every character that could act on a terminal written as an escape, losing nothing.

    Brackets and backslashes stay as they are: whoever prints through rich or Textual must pass a `Text` or
    `Content`, never a string that would be parsed as markup.
    """
    return _UNSAFE.sub(_escape, text)


def visible_bytes(data: bytes) -> str:
    """`data` as one safe line; bytes that are not UTF-8 are written as \\xNN."""
    return visible(data.decode(errors="backslashreplace"))


def shorten(text: str, width: int, *, mark: str = "…") -> str:
    """`text` cut to at most `width` characters, ending in `mark` where something was cut."""
    if len(text) <= width:
        return text
    return text[: max(0, width - len(mark))] + mark[:width]


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
