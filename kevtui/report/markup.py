"""HTML and SVG as values: a plain string is text and always escaped, only `tag` makes markup."""

import re
from html import escape

from kev.text import visible

_VOID = {"meta"}
_NO_CHARACTER = re.compile("[\ufffe\uffff]")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(element: str, /, *children: str, **attributes: object) -> Markup:
    """`element` around `children`. An attribute that is None is left out; `text_anchor` is text-anchor."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if element in _VOID:
        return Markup(f"<{element}{written}>")
    return Markup(f"<{element}{written}>{join(*children)}</{element}>")


def join(*children: str) -> Markup:
    """The children one after the other, escaped unless they are markup."""
    return Markup("".join([child if isinstance(child, Markup) else text(child) for child in children]))


def text(value: str) -> Markup:
    """`value` as text: no character of it acts on a page or, where the page is printed, on a terminal."""
    return Markup(escape(visible(_NO_CHARACTER.sub("?", value)), quote=True))
