"""Text on its way to the user's clipboard through the terminal (OSC 52), which works over SSH and inside tmux."""

import base64
from collections.abc import Mapping

from kev.text import visible

LIMIT = 74_994
"""Bytes that every terminal with OSC 52 takes: some take no sequence above 100,000 characters."""


def safe(text: str) -> str:
    """`text` as it may be pasted into a shell: no control character but line breaks, and none of those at its end."""
    return "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))


def cut(text: str) -> str:
    """As much of `text` as a terminal takes, in whole characters."""
    return text.encode(errors="replace")[:LIMIT].decode(errors="ignore")


def sequence(text: str, environment: Mapping[str, str]) -> str:
    """What makes the terminal take `text`.

    tmux takes the plain sequence where `set-clipboard` is on, and hands on the wrapped one where `allow-passthrough`
    is on. It drops the other one in silence, so that both may be sent.
    """
    plain = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    if not environment.get("TMUX"):
        return plain
    return plain + "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"
