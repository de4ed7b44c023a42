"""Delegation: who signs in the end, along a chain of substitutes."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, choice
from kev.data.record import DataRecord
from kev.data.words import PEOPLE

SOURCE = "delegation"

LINKS = {
    Pack.TRAIN: "{person} is away, {substitute} stands in.",
    Pack.DEVELOPMENT: "{substitute} replaces {person}, who is ill.",
    Pack.TEST: "While {person} travels, {substitute} decides.",
}
PRESENT = {
    Pack.TRAIN: "{person} is in the office.",
    Pack.DEVELOPMENT: "{person} is at work.",
    Pack.TEST: "{person} is on duty.",
}
INSTRUCTIONS = "The request goes to {person}. Who decides on it in the end?"


def solve(facts: dict[str, Any]) -> str:
    """The person at the end of the chain. Facts: `first`, `substitutes` {person: substitute}, free of circles."""
    person = facts["first"]
    while person in facts["substitutes"]:
        person = facts["substitutes"][person]
    return str(person)


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Chains without end, of 1 to 3 steps among 5 people, told in random order beside a link that leads nowhere."""
    pack = part.pack
    for identity in part.ids(SOURCE):
        people = draw.sample(PEOPLE[pack], 6)
        steps = draw.between(1, 3)
        chain, others = people[: steps + 1], people[steps + 1 :]
        substitutes = dict(pairwise(chain)) | {others[0]: others[1]}
        facts = {"first": chain[0], "substitutes": substitutes}
        lines = [LINKS[pack].format(person=person, substitute=other) for person, other in substitutes.items()]
        lines += [PRESENT[pack].format(person=person) for person in people if person not in substitutes]
        options: dict[str, str | None] = dict.fromkeys(draw.shuffled([*chain, *others[:2]]))
        yield [
            DataRecord.build(
                " ".join(draw.shuffled(lines)),
                choice(INSTRUCTIONS.format(person=chain[0]), options, solve(facts), SOURCE),
                id=identity,
                source=SOURCE,
                facts=facts,
            )
        ]
