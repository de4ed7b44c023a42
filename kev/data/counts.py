"""Counting: how many of the listed readings pass a limit."""

from collections.abc import Iterator
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, score
from kev.data.record import DataRecord
from kev.data.words import PLACES

SOURCE = "counts"

LEVELS = ["none", "one", "two", "three", "four"]

LIMITS = {
    Pack.TRAIN: "A pump is overdue above {limit} days.",
    Pack.DEVELOPMENT: "Pumps running for more than {limit} days are overdue.",
    Pack.TEST: "Once past {limit} days a pump counts as overdue.",
}
READINGS = {
    Pack.TRAIN: "The pump in {place} has run for {value} days.",
    Pack.DEVELOPMENT: "{place}: {value} days.",
    Pack.TEST: "In {place} it has been {value} days.",
}
INSTRUCTIONS = "How many pumps are overdue?"


def solve(facts: dict[str, Any]) -> int:
    """The number of readings above the limit. Facts: `limit`, `values`."""
    return sum(value > facts["limit"] for value in facts["values"])


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Lists of four readings without end; every count from none to four is as likely. The limit itself is in time."""
    pack = part.pack
    for identity in part.ids(SOURCE):
        limit, wanted = draw.between(10, 80), draw.below(len(LEVELS))
        above = [draw.between(limit + 1, 99) for _ in range(wanted)]
        below = [draw.between(2, limit) for _ in range(len(LEVELS) - 1 - wanted)]
        values = draw.shuffled(above + below)
        facts = {"limit": limit, "values": values}
        places = draw.sample(PLACES[pack], len(LEVELS) - 1)
        lines = [LIMITS[pack].format(limit=limit)]
        lines += [READINGS[pack].format(place=place, value=value) for place, value in zip(places, values, strict=True)]
        questions = score(INSTRUCTIONS, LEVELS, solve(facts), SOURCE)
        yield [DataRecord.build(" ".join(lines), questions, id=identity, source=SOURCE, facts=facts)]
