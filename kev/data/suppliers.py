"""Trade-offs: the cheapest offer among those that meet two conditions."""

from collections.abc import Iterator
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, choice
from kev.data.record import DataRecord
from kev.data.words import GOODS, TEAMS

SOURCE = "suppliers"

OFFERS = {
    Pack.TRAIN: "{name} asks {price} dollars, delivers in {days} days and has {stock} {goods}.",
    Pack.DEVELOPMENT: "Offer of {name}: {stock} {goods} within {days} days for {price} dollars.",
    Pack.TEST: "From {name} we get {stock} {goods} after {days} days at {price} dollars.",
}
NEEDS = {
    Pack.TRAIN: "We need {stock} {goods} in {days} days.",
    Pack.DEVELOPMENT: "Required: at least {stock} {goods}, in {days} days at most.",
    Pack.TEST: "No fewer than {stock} {goods} have to be here within {days} days.",
}
INSTRUCTIONS = "Which is the cheapest offer that brings enough in time?"


def solve(facts: dict[str, Any]) -> str | None:
    """The offer, or None if none serves. Facts: `offers` {name: [price, days, stock]}, `days`, `stock`."""
    serving = {
        name: price
        for name, (price, days, stock) in facts["offers"].items()
        if days <= facts["days"] and stock >= facts["stock"]
    }
    return min(serving, key=lambda name: serving[name]) if serving else None


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Comparisons of 4 offers without end; the cheapest of all never serves, so that price alone misleads."""
    pack = part.pack
    for identity in part.ids(SOURCE):
        while True:
            names = draw.sample(TEAMS[pack], 4)
            prices = draw.sample(range(11, 99), 4)
            offers = {n: [p, draw.between(2, 30), draw.between(10, 90)] for n, p in zip(names, prices, strict=True)}
            facts = {"offers": offers, "days": draw.between(6, 24), "stock": draw.between(20, 70)}
            best = solve(facts)
            if best is not None and best != min(offers, key=lambda name: offers[name][0]):
                break
        goods = draw.pick(GOODS[pack])
        lines = [NEEDS[pack].format(stock=facts["stock"], goods=goods, days=facts["days"])]
        lines += [
            OFFERS[pack].format(name=name, price=price, days=days, stock=stock, goods=goods)
            for name, (price, days, stock) in offers.items()
        ]
        options: dict[str, str | None] = dict.fromkeys(draw.shuffled(names))
        yield [
            DataRecord.build(
                " ".join(lines), choice(INSTRUCTIONS, options, best, SOURCE), id=identity, source=SOURCE, facts=facts
            )
        ]
