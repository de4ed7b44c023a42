"""Parcel classes: the smallest class that a parcel fits by weight and by length."""

from collections.abc import Iterator
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, choice
from kev.data.record import DataRecord

SOURCE = "parcels"

CLASSES = {
    Pack.TRAIN: ("letter", "packet", "crate"),
    Pack.DEVELOPMENT: ("pouch", "box", "pallet"),
    Pack.TEST: ("sleeve", "bale", "container"),
}
TARIFFS = {
    Pack.TRAIN: "A {name} takes up to {weight} kilograms and {length} centimetres.",
    Pack.DEVELOPMENT: "Limits of a {name}: {weight} kilograms, {length} centimetres.",
    Pack.TEST: "{weight} kilograms and {length} centimetres are the most for a {name}.",
}
PARCELS = {
    Pack.TRAIN: "The parcel weighs {weight} kilograms and is {length} centimetres long.",
    Pack.DEVELOPMENT: "To be sent: {weight} kilograms, {length} centimetres.",
    Pack.TEST: "Ours has {length} centimetres and {weight} kilograms.",
}
INSTRUCTIONS = "Which is the smallest class that takes the parcel?"


def solve(facts: dict[str, Any]) -> str:
    """The class. Facts: `classes` [[name, weight, length]] from the smallest, `weight`, `length`."""
    fitting = (
        name for name, weight, length in facts["classes"] if facts["weight"] <= weight and facts["length"] <= length
    )
    return str(next(fitting))


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Parcels without end; every class is as likely, and weight and length decide about equally often."""
    pack = part.pack
    for identity in part.ids(SOURCE):
        weights, lengths = (sorted(draw.sample(range(low, high), 3)) for low, high in ((2, 40), (20, 180)))
        classes = [list(row) for row in zip(CLASSES[pack], weights, lengths, strict=True)]
        size = draw.below(3)
        floors = [(0, *limits)[size] + 1 for limits in (weights, lengths)]
        decisive = draw.below(2)
        weight, length = (
            draw.between(floors[axis] if axis == decisive else 1, limits[size])
            for axis, limits in enumerate((weights, lengths))
        )
        facts = {"classes": classes, "weight": weight, "length": length}
        lines = [TARIFFS[pack].format(name=name, weight=w, length=long) for name, w, long in classes]
        options: dict[str, str | None] = dict.fromkeys(draw.shuffled(CLASSES[pack]))
        yield [
            DataRecord.build(
                " ".join([*lines, PARCELS[pack].format(weight=weight, length=length)]),
                choice(INSTRUCTIONS, options, solve(facts), SOURCE),
                id=identity,
                source=SOURCE,
                facts=facts,
            )
        ]
