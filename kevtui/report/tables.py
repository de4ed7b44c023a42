"""A table of the page, and a moment as it is written there. Pure."""

from collections.abc import Iterable
from datetime import datetime

from kevtui.format import MISSING
from kevtui.report.markup import Markup, tag


def moment(at: datetime | None) -> str:
    """UTC, to the minute."""
    return MISSING if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Markup:
    """A table that scrolls by itself on a narrow screen; a cell is text, or markup."""
    head = tag("tr", *(tag("th", word, scope="col") for word in heads))
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")
