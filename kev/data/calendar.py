"""Bookings of one room: whether two of them overlap."""

from collections.abc import Iterator
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, noul
from kev.data.record import DataRecord
from kev.data.words import PEOPLE

SOURCE = "calendar"

BOOKINGS = {
    Pack.TRAIN: "{person} has the room from {start} to {end}.",
    Pack.DEVELOPMENT: "The room is booked by {person}, {start} until {end}.",
    Pack.TEST: "{start} to {end}: {person}.",
}
INSTRUCTIONS = "Do the two bookings overlap? One may begin when the other ends."


def solve(facts: dict[str, Any]) -> bool:
    """Whether they overlap. Facts: `first` and `second`, each (start, end) in minutes of the day."""
    (first_start, first_end), (second_start, second_end) = facts["first"], facts["second"]
    return bool(first_start < second_end and second_start < first_end)


def clock(minutes: int) -> str:
    """Minutes of the day as `09:45`."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Pairs of bookings without end, in quarters of an hour; both answers are equally likely."""
    for identity in part.ids(SOURCE):
        wanted = draw.chance(0.5)
        while True:
            facts = {"first": _span(draw), "second": _span(draw)}
            if solve(facts) == wanted:
                break
        people = draw.sample(PEOPLE[part.pack], 2)
        lines = [
            BOOKINGS[part.pack].format(person=person, start=clock(start), end=clock(end))
            for person, (start, end) in zip(people, facts.values(), strict=True)
        ]
        yield [
            DataRecord.build(
                " ".join(lines), noul(INSTRUCTIONS, solve(facts), SOURCE), id=identity, source=SOURCE, facts=facts
            )
        ]


def _span(draw: Draw) -> list[int]:
    start = 15 * draw.between(32, 66)
    return [start, start + 15 * draw.between(1, 10)]
