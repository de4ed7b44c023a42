"""Stock lists: which of several places holds the most of one kind of goods."""

from collections.abc import Iterator
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, choice
from kev.data.record import DataRecord
from kev.data.words import GOODS, PLACES

SOURCE = "stock"

QUESTIONS = {
    Pack.TRAIN: "Which place holds the most {goods}?",
    Pack.DEVELOPMENT: "Where are there the most {goods}?",
    Pack.TEST: "Which place could lend out the most {goods}?",
}


def solve(facts: dict[str, Any]) -> str:
    """The place. Facts: `stock` {place: {goods: count}}, `goods`; no two places hold the same count of it."""
    stock = facts["stock"]
    return str(max(stock, key=lambda place: stock[place][facts["goods"]]))


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Lists without end: 3 or 4 places, each with the same two kinds of goods."""
    pack = part.pack
    for identity in part.ids(SOURCE):
        places = draw.sample(PLACES[pack], draw.between(3, 4))
        wanted, other = draw.sample(GOODS[pack], 2)
        counts = draw.sample(range(3, 99), len(places))
        stock = {
            place: dict(draw.shuffled([(wanted, count), (other, draw.between(3, 98))]))
            for place, count in zip(places, counts, strict=True)
        }
        facts = {"stock": stock, "goods": wanted}
        options: dict[str, str | None] = dict.fromkeys(draw.shuffled(places))
        yield [
            DataRecord.build(
                {"stock": stock},
                choice(QUESTIONS[pack].format(goods=wanted), options, solve(facts), SOURCE),
                id=identity,
                source=SOURCE,
                facts=facts,
            )
        ]
