"""Text from files, logs and remote answers is data: made safe here before any terminal sees it."""

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1 controls: escapes, carriage returns, bells, single-byte CSI
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators and direction changes, which reorder a line
    "\ud800-\udfff\ufeff\ufff9-\ufffb"  # half a surrogate pair cannot be encoded; the rest is invisible
    # No width and no ink: what holds one looks like what does not. The last range can carry a whole hidden text.
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\uffa0\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
    "|(?<![^\0-\x7f])[\u200c\u200d\ufe00-\ufe0f]"  # joiners and selectors, which other scripts and emoji need
)
_LINE_END = re.compile("\r\n?|\n")
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


def lines_of(text: str) -> list[str]:
    """`text` cut at its line ends (newline, CRLF, CR) and nowhere else, without a byte order mark.

    `str.splitlines` also cuts at separators that are text to everybody else, so that line numbers no longer agree.
    """
    return _LINE_END.split(text.removeprefix("\ufeff"))


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
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
