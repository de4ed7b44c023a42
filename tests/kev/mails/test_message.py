"""A raw mail becomes a state, however it was encoded, and shows nothing that gives its label away."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_mails import mail

from kev.data.render import render
from kev.mails.message import MAX_BODY, MAX_HEADER, state_of


def test_only_sender_subject_and_text_are_shown() -> None:
    raw = mail("Come and see.\n\n\n\n  It is   here.", headers="X-Spam-Status: Yes\nDate: Thu, 1 Jan 1970 00:00:00\n")
    assert state_of(raw) == {"from": "a@example.org", "subject": "hello", "text": "Come and see.\n\nIt is here."}


def test_of_several_parts_the_plain_one_is_shown() -> None:
    raw = mail(
        "--x\nContent-Type: text/html\n\n<b>marked</b>\n--x\nContent-Type: text/plain\n\nplain\n--x--",
        headers='MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary="x"\n',
    )
    assert state_of(raw)["text"] == "plain"


def test_marks_scripts_and_styles_are_taken_out_of_html() -> None:
    page = "<style>p {}</style><p>Buy&nbsp;now</p><script>alert('x')</script><p>or <b>never</b>"
    assert state_of(mail(page, headers="Content-Type: text/html\n"))["text"] == "Buy now\nor never"


def test_encoded_text_and_headers_are_decoded() -> None:
    body = base64.b64encode("Grüße".encode()).decode()
    raw = mail(
        body,
        subject="=?utf-8?b?" + base64.b64encode("Schöne Grüße".encode()).decode() + "?=",
        headers="Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n",
    )
    assert state_of(raw) | {"from": ""} == {"from": "", "subject": "Schöne Grüße", "text": "Grüße"}


@pytest.mark.parametrize("charset", ["no-such", "hex", "undefined", "utf-8\x00", '"'])
def test_an_encoding_that_is_none_still_gives_text(charset: str) -> None:
    raw = mail("kept", headers=f"Content-Type: text/plain; charset={charset}\n")
    assert state_of(raw)["text"] == "kept"


def test_nothing_is_longer_than_its_limit_and_no_control_character_comes_through() -> None:
    state = state_of(mail("x\x1b[2J\x07" + "word " * 1000, subject="s" * 1000, sender="\x9b" + "f" * 1000))
    assert len(state["text"]) <= MAX_BODY
    assert len(state["subject"]) <= MAX_HEADER and len(state["from"]) <= MAX_HEADER
    assert all(character.isprintable() or character == "\n" for character in render(state))


@given(
    st.binary(max_size=400), st.sampled_from([b"", b"Content-Type: text/html\n\n", b"Content-Type: multipart/x\n\n"])
)
def test_any_bytes_are_a_mail(content: bytes, beginning: bytes) -> None:
    state = state_of(beginning + content)
    assert set(state) == {"from", "subject", "text"}
    render(state).encode()
