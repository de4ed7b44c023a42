"""Ordinal thresholds: a table of bands, a reading, and the question in which band the reading falls."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, score
from kev.data.record import DataRecord
from kev.data.words import PLACES

SOURCE = "levels"

# (what is read, its unit, the levels from the lowest)
SCALES = {
    Pack.TRAIN: (
        ("rain", "millimetres", ("calm", "wet", "heavy", "flooding")),
        ("the queue", "people", ("short", "usual", "long")),
        ("dust", "grains", ("clean", "hazy", "thick", "choking", "blinding")),
    ),
    Pack.DEVELOPMENT: (("the wind", "knots", ("still", "breezy", "rough", "wild")),),
    Pack.TEST: (
        ("the swell", "feet", ("flat", "low", "high", "towering")),
        ("noise", "decibels", ("quiet", "loud", "deafening")),
    ),
}

READINGS = {
    Pack.TRAIN: ("Today {place} reports {value} {unit}.", "The last reading from {place} is {value} {unit}."),
    Pack.DEVELOPMENT: ("At {place} they measured {value} {unit}.",),
    Pack.TEST: ("{place} stands at {value} {unit}.", "{value} {unit} were noted in {place}."),
}
BANDS = {
    Pack.TRAIN: ("below {edge} is {level}", "{edge} and over is {level}"),
    Pack.DEVELOPMENT: ("less than {edge} counts as {level}", "from {edge} on it counts as {level}"),
    Pack.TEST: ("under {edge} we say {level}", "at {edge} or more we say {level}"),
}


def solve(facts: dict[str, Any]) -> int | None:
    """The level from 0, or None without a reading. Facts: `edges` (each belongs to the upper level), `value`."""
    return None if facts.get("value") is None else bisect_right(facts["edges"], facts["value"])


def draw_facts(draw: Draw, pack: Pack) -> dict[str, Any]:
    """A scale with edges at least 4 apart and a reading; every level is as likely, edges are met often."""
    what, unit, names = draw.pick(SCALES[pack])
    edges: list[int] = []
    while len(edges) < len(names) - 1 or any(b - a < 4 for a, b in pairwise(edges)):
        edges = sorted(draw.between(5, 94) for _ in names[1:])
    level = draw.below(len(names))
    low, high = (0, *edges)[level], (*edges, 100)[level] - 1
    value = draw.pick([low, high]) if draw.chance(0.25) else draw.between(low, high)
    place, reading = draw.pick(PLACES[pack]), draw.below(len(READINGS[pack]))
    fixed = {"what": what, "unit": unit, "names": list(names), "place": place, "reading": reading}
    return fixed | {"edges": edges, "value": value}


def sentences(pack: Pack, facts: dict[str, Any]) -> list[str]:
    """The text in sentences; the last one alone holds the reading."""
    below, above = BANDS[pack]
    names, edges = facts["names"], facts["edges"]
    bands = [below.format(edge=edges[0], level=names[0])]
    bands += [above.format(edge=edge, level=name) for edge, name in zip(edges, names[1:], strict=True)]
    reading = READINGS[pack][facts["reading"]].format(**facts)
    return [f"For {facts['what']}, " + ", ".join(bands) + ".", reading]


def question(facts: dict[str, Any], src: str) -> dict[str, dict[str, Any]]:
    """The question about a text made from `facts`, with its label."""
    label = solve(facts)
    assert label is not None
    return score(f"Which level is {facts['what']} at?", facts["names"], label, src)


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Readings without end. A reading on an edge belongs to the upper level."""
    for identity in part.ids(SOURCE):
        facts = draw_facts(draw, part.pack)
        text = " ".join(sentences(part.pack, facts))
        yield [DataRecord.build(text, question(facts, SOURCE), id=identity, source=SOURCE, facts=facts)]
