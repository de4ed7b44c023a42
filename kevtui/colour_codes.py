"""Fewer bytes for the same picture: colour codes that change nothing are left out of what goes to the terminal.

Textual ends every piece of text with a reset and begins the next with all its codes again, 40 bytes a piece in
24-bit colour, however short the text and however equal its neighbours. Measured on twenty trials that report once a
second: three bytes out of four.
"""

import re

CODE = re.compile(r"(\x1b\[[0-9;]*m)")
_INVISIBLE = re.compile(r"(?:\x1b\[[0-9;]*H|\r?\n)*")
"""Moves of the cursor print nothing, so no colour need be right before them."""

RESET = "\x1b[0m"
RESETS = (RESET, "\x1b[m")


def without_repeats(data: str) -> str:
    """`data` with the same effect on a terminal and no needless colour code; it begins and ends without colours."""
    if "\x1b[" not in data:
        return data
    out: list[str] = []
    wanted = current = ""
    for i, piece in enumerate(CODE.split(data)):
        if i % 2:
            # A code is added to those before it, until the next reset.
            wanted = "" if piece in RESETS else wanted + piece
        elif piece:
            if wanted != current and _INVISIBLE.fullmatch(piece) is None:
                out.append(_change(current, wanted))
                current = wanted
            out.append(piece)
    if current != "":
        out.append(RESET)
        current = ""
    if wanted != current:
        out.append(wanted)
    return "".join(out)


def _change(current: str, wanted: str) -> str:
    if not current:
        return wanted
    if not wanted:
        return RESET
    if wanted.startswith(current):
        return wanted[len(current) :]
    return "\x1b[0;" + wanted[2:]
