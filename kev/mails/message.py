"""One raw mail as the state of a record: who says it is from them, its subject, and the beginning of its text.

All other headers are left out. In this collection they give the answer away: spam and ham were gathered on other
machines and in other months, so stamps of servers, dates and the collector's own lists differ.
"""

import email
import email.policy
import re
import unicodedata
from email.header import decode_header
from email.message import Message
from html.parser import HTMLParser

MAX_BODY = 400
"""Characters of a mail's text that are kept: enough to judge it by, and few enough tokens for a small machine."""

MAX_HEADER = 200
_BLANKS = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n{3,}")


def state_of(raw: bytes) -> dict[str, str]:
    """`from`, `subject` and `text` of a mail, however it is damaged; what it lacks is empty."""
    # The old policy: it parses whatever was ever sent, where the new one raises on much of it.
    message = email.message_from_bytes(_without_envelope(raw), policy=email.policy.compat32)
    return {
        "from": _header(message, "From"),
        "subject": _header(message, "Subject"),
        "text": _clean(_text(message))[:MAX_BODY].rstrip(),
    }


def _without_envelope(raw: bytes) -> bytes:
    first, _, rest = raw.partition(b"\n")
    return rest if first.startswith(b"From ") else raw


def _header(message: Message, name: str) -> str:
    value = message.get(name)
    if value is None:
        return ""
    try:
        parts = [_decode(part, charset) for part, charset in decode_header(value)]
    except (ValueError, LookupError):  # base64 that is none
        parts = [str(value)]
    return " ".join(_clean("".join(parts)).split())[:MAX_HEADER].rstrip()


def _text(message: Message) -> str:
    """The first plain part, or else the first HTML part with its marks taken out."""
    parts = [part for part in message.walk() if not part.is_multipart()]
    for kind in ("text/plain", "text/html"):
        for part in parts:
            if part.get_content_type() == kind:
                content = part.get_payload(decode=True)
                text = _decode(content if isinstance(content, bytes) else b"", part.get_param("charset"))
                text = _without_marks(text) if kind == "text/html" else text
                if text.strip():
                    return text
    return ""


def _decode(content: bytes | str, charset: object) -> str:
    if isinstance(content, str):
        return content
    try:
        return content.decode(str(charset or "latin-1"), errors="replace")
    except (LookupError, ValueError):  # a name of no encoding, or one that is no encoding of text
        return content.decode("latin-1")


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    shown = "".join(
        character if character in "\n\t" or unicodedata.category(character)[0] != "C" else " " for character in text
    )
    lines = [_BLANKS.sub(" ", line).strip() for line in shown.split("\n")]
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self._hidden += tag in ("script", "style")
        if tag in ("br", "p", "div", "tr", "li", "h1", "h2", "h3"):
            self.found.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= bool(self._hidden) and tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found.append(data)


def _without_marks(text: str) -> str:
    words = _Words()
    try:
        words.feed(text)
        words.close()
    except (AssertionError, ValueError):  # marked sections that are none
        return re.sub(r"<[^>]*>", " ", text)
    return "".join(words.found)
