"""An optional note in the state: how far apart its dates are, for models that read dates better than they subtract.

One sentence relates each date to every earlier-found one. Applying it twice changes nothing the second time.
"""

import re
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from typing import Any

from kev.data.render import render

KEY = "date_facts"
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
_DATE = re.compile(rf"\b(?:({'|'.join(MONTHS)}) (\d{{1,2}}), (\d{{4}})|(\d{{4}})-(\d{{2}})-(\d{{2}}))\b")
_NOTE = re.compile(rf"\n\n{KEY}: [^\n]*\Z")


def with_date_facts(state: Any) -> Any:
    """`state` with the note: under a key of its own, as a last list element, or as a last paragraph of text.

    A state with fewer than two different dates stays as it is.
    """
    state = _without(state)
    facts = " ".join(_sentences(render(state)))
    if not facts:
        return state
    match state:
        case dict():
            return {**state, KEY: facts}
        case list():
            return [*state, {KEY: facts}]
        case str():
            return f"{state}\n\n{KEY}: {facts}"
    return state


def _without(state: Any) -> Any:
    match state:
        case dict():
            return {key: value for key, value in state.items() if key != KEY}
        case list() if state and isinstance(state[-1], dict) and set(state[-1]) == {KEY}:
            return state[:-1]
        case str():
            return _NOTE.sub("", state)
    return state


def _sentences(text: str) -> Iterator[str]:
    found: dict[str, date] = {}
    for match in _DATE.finditer(text):
        day = _day(match)
        if day is not None:
            found.setdefault(match.group(), day)
    for earlier, later in combinations(found.items(), 2):
        yield _relate(later, earlier)


def _day(match: re.Match[str]) -> date | None:
    name, day, year, iso_year, iso_month, iso_day = match.groups()
    try:
        if name:
            return date(int(year), MONTHS.index(name) + 1, int(day))
        return date(int(iso_year), int(iso_month), int(iso_day))
    except ValueError:  # the 31st of June
        return None


def _relate(one: tuple[str, date], other: tuple[str, date]) -> str:
    days = (one[1] - other[1]).days
    if not days:
        return f"{one[0]} is the same day as {other[0]}."
    unit = "day" if abs(days) == 1 else "days"
    return f"{one[0]} is {abs(days)} {unit} {'after' if days > 0 else 'before'} {other[0]}."
