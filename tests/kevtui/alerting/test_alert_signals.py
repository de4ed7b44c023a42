"""What reaches the terminal is a bell or a whole sequence, whatever the texts of files hold."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kevtui.alerting.book import News
from kevtui.alerting.signals import MOST_TOLD, headline, notification
from kevtui.observe.snapshot import Alert, Severity

OSC = re.compile(r"\x1b\](?:9;kevtui: |777;notify;kevtui;)([^\x00-\x1f\x7f-\x9f]*)\x07")
WRAPPED = re.compile(r"\x1bPtmux;((?:\x1b\x1b|[^\x1b])*)\x1b\\")


def test_a_headline_says_whose_it_is_how_grave_what_and_how_often() -> None:
    alert = Alert("slowed", Severity.WARNING, "s/trial-0", "slowed to 3.0 steps/min")
    assert headline(News(alert), "r41") == "r41: warning: s/trial-0: slowed to 3.0 steps/min"
    assert headline(News(alert, 2), "r41").endswith("steps/min (3 times)")


def test_each_terminal_gets_the_sequence_that_it_knows() -> None:
    assert notification(["one"], "osc9", {}, ascii_only=False) == "\x1b]9;kevtui: one\x07"
    assert notification(["a;b"], "osc777", {}, ascii_only=False) == "\x1b]777;notify;kevtui;a,b\x07"
    assert len(OSC.findall(notification(["one", "two"], "both", {}, ascii_only=False))) == 4


def test_tmux_is_given_what_it_hands_on() -> None:
    sent = notification(["one"], "osc9", {"TMUX": "/tmp/tmux-0/default,1,0"}, ascii_only=False)
    assert sent == "\x1bPtmux;\x1b\x1b]9;kevtui: one\x07\x1b\\"


def test_a_hundred_at_once_are_a_few_and_a_number() -> None:
    told = OSC.findall(notification([f"line {number}" for number in range(100)], "osc9", {}, ascii_only=False))
    assert told == ["line 0", "line 1", "line 2", f"and {100 - MOST_TOLD} more alerts"]


@given(st.lists(st.text(max_size=300), min_size=1, max_size=8), st.sampled_from(["osc9", "osc777", "both"]),
       st.booleans(), st.booleans())  # fmt: skip
def test_no_text_ends_a_sequence_or_begins_another(lines: list[str], by: str, in_tmux: bool, ascii_only: bool) -> None:
    sent = notification(lines, by, {"TMUX": "x"} if in_tmux else {}, ascii_only=ascii_only)
    if in_tmux:
        assert WRAPPED.sub("", sent) == ""
        sent = "".join(WRAPPED.findall(sent)).replace("\x1b\x1b", "\x1b")
    assert OSC.sub("", sent) == ""
    assert not ascii_only or sent.isascii()
    assert all(len(text) <= 220 * 6 for text in OSC.findall(sent))
    sent.encode()
