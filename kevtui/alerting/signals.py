"""What makes a terminal ring or notify its user. Pure: text in, bytes for the terminal out.

OSC 9 (iTerm2, kitty, WezTerm, Ghostty, foot) carries one text; OSC 777 (urxvt, foot, WezTerm, Ghostty, terminals on
VTE) a title and a text. Others ignore both. No terminal says which of them it knows.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kev.text import shorten, visible
from kevtui import glyphs
from kevtui.alerting.book import News

BELL: Final = "\x07"
NAME: Final = "kevtui"
MOST_TEXT: Final = 200
MOST_TOLD: Final = 3
"""Notifications at once; the rest is counted in one more. A hundred trials can fail in the same second."""


def headline(news: News, title: str) -> str:
    """The alert in one line, as for a notification: whose it is, how grave, what, and how often."""
    alert = news.alert
    what = f"{alert.subject}: {alert.text}" if alert.subject else alert.text
    often = f" ({news.repeats + 1} times)" if news.repeats else ""
    return f"{title}: {alert.severity}: {what}{often}"


def notification(lines: Sequence[str], by: str, environment: Mapping[str, str], *, ascii_only: bool) -> str:
    """What asks the terminal to notify its user of each of `lines`, the first ones singly.

    `by` is "osc9", "osc777" or "both". Inside tmux the sequences are wrapped for it to hand on, which it does where
    `allow-passthrough` is on.
    """
    if len(lines) > MOST_TOLD + 1:
        lines = [*lines[:MOST_TOLD], f"and {len(lines) - MOST_TOLD} more alerts"]
    wanted = ("osc9", "osc777") if by == "both" else (by,)
    plain = [_sequence(kind, _safe(line, ascii_only=ascii_only)) for line in lines for kind in wanted]
    return "".join(map(_for_tmux, plain) if environment.get("TMUX") else plain)


def _safe(text: str, *, ascii_only: bool) -> str:
    """`text` without anything that could end the sequence or begin another: file text is data."""
    text = visible(shorten(visible(text), MOST_TEXT))
    # A terminal that is not told to be UTF-8 may take the second half of a character for a control.
    return glyphs.to_ascii(text) if ascii_only else text


def _sequence(kind: str, text: str) -> str:
    if kind == "osc9":
        # Begins with a name: "9;4;..." would set a progress bar.
        return f"\x1b]9;{NAME}: {text}\x07"
    # A semicolon would begin another field.
    return f"\x1b]777;notify;{NAME};{text.replace(';', ',')}\x07"


def _for_tmux(sequence: str) -> str:
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
