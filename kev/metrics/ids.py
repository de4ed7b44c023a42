"""Record ids that a reader would take for one another."""

import unicodedata
from collections.abc import Iterable


def look_alikes(ids: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of different ids that a reader would take for one: other Unicode forms, stray or invisible blanks.

    They stay different; whoever compares by eye, or retypes one, must be told.
    """
    distinct = dict.fromkeys(ids)
    seen: dict[str, str] = {}
    pairs = []
    for spelling in distinct:
        shape = _shape(spelling)
        first = seen.setdefault(shape, spelling)
        if first != spelling:
            pairs.append((first, spelling))
    return pairs


def _shape(text: str) -> str:
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    folded = unicodedata.normalize("NFKC", text)
    shown = "".join(
        " " if c.isspace() else c for c in folded if unicodedata.category(c) not in ("Cf", "Cc") or c.isspace()
    )
    return " ".join(shown.split())
