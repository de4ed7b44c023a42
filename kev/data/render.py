"""Structured content as the text that the model reads, and the fingerprint by which two states are the same."""

import hashlib
from typing import Any

MAX_DEPTH = 64
"""Deeper nesting than any document has; a bound, so that hostile nesting ends in words and not in a stack overflow."""


def render(value: Any, depth: int = 0) -> str:
    """`value`, any JSON, as text: one `key: value` or `- element` a line, two spaces of indent a level.

    Null is empty and truth values are `True` and `False`: released models were trained on exactly these bytes.
    Raises ValueError for nesting deeper than MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    indent = "  " * depth
    match value:
        case None:
            return ""
        case dict():
            return "\n".join(indent + _entry(str(key), child, depth) for key, child in value.items())
        case list():
            return "\n".join(f"{indent}- {render(child, depth + 1).lstrip()}" for child in value)
        case _:
            return str(value)


def text_sha256(state: Any) -> str:
    """The fingerprint of a state's text: case folded and runs of white space made one space, then sha256."""
    return hashlib.sha256(" ".join(render(state).casefold().split()).encode(errors="surrogatepass")).hexdigest()


def _entry(key: str, child: Any, depth: int) -> str:
    if isinstance(child, dict | list):
        return f"{key}:\n{render(child, depth + 1)}"
    return f"{key}: {render(child)}"
