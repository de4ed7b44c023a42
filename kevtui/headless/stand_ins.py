"""The same words for an output that holds ASCII only."""

_STAND_INS = {
    "–": "-",
    "—": "-",
    "−": "-",
    "·": "|",
    "…": "...",
    "→": "->",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "×": "x",
    "Δ": "delta",
    "●": "*",
    "○": "o",
    "◐": "~",
    "✓": "+",
    "✗": "x",
    "▲": "!",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "\u00a0": " ",
}
_TABLE = str.maketrans(_STAND_INS)


def to_ascii(text: str) -> str:
    """`text` in ASCII: a stand-in where there is one, an escape such as \\u4e2d for the rest, nothing dropped."""
    if text.isascii():
        return text
    return text.translate(_TABLE).encode("ascii", "backslashreplace").decode("ascii")
