"""Ticket routing: which desk takes a ticket, by what each desk says it handles, with one rule that goes before."""

from collections.abc import Iterator
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, choice
from kev.data.record import DataRecord
from kev.data.words import PEOPLE, PLACES, TEAMS

SOURCE = "tickets"

# No two packs share a matter, so on unseen text only reading what the desks handle gives the answer.
MATTERS = {
    Pack.TRAIN: (
        "late parcels", "double charges", "lost passwords", "broken screens", "wrong addresses", "missing invoices",
        "expired vouchers", "frozen accounts", "noisy fans", "torn boxes", "unpaid refunds", "dead batteries",
        "slow pages", "wrong sizes", "changed names", "closed branches", "spoiled food", "blocked cards",
    ),
    Pack.DEVELOPMENT: (
        "bent frames", "faded prints", "stuck keys", "early bills", "blank emails", "loose wheels", "old contracts",
        "cold rooms", "split seams", "false alarms",
    ),
    Pack.TEST: (
        "leaking taps", "muted calls", "cracked tiles", "extra fees", "stale maps", "jammed doors", "weak signals",
        "empty crates", "dull blades", "wet floors",
    ),
}  # fmt: skip

OPENINGS = {
    Pack.TRAIN: (
        "{person} writes about {matter}.",
        "This is about {matter}, says {person}.",
        "{person}: {matter} again.",
    ),
    Pack.DEVELOPMENT: ("A letter from {person} brings up {matter}.", "{person} complains of {matter}."),
    Pack.TEST: ("{person} called because of {matter}.", "Reported by {person}: {matter}."),
}
CLOSINGS = {
    Pack.TRAIN: ("It happened in {place}.", "The shop in {place} knows.", "Please answer to {place}."),
    Pack.DEVELOPMENT: ("The sender lives in {place}.", "It began in {place}."),
    Pack.TEST: ("This concerns {place}.", "The branch is {place}."),
}
INJURY = {
    Pack.TRAIN: "Someone was hurt.",
    Pack.DEVELOPMENT: "One person was hurt by it.",
    Pack.TEST: "A customer got hurt.",
}

INSTRUCTIONS = "Which desk takes this ticket? If anyone was hurt it is the {desk} desk, whatever the matter."


def solve(facts: dict[str, Any]) -> str:
    """The desk. Facts: `handles` {desk: [matter]}, `matter`, `hurt`, `first` (the desk for injuries)."""
    if facts["hurt"]:
        return str(facts["first"])
    [desk] = [desk for desk, matters in facts["handles"].items() if facts["matter"] in matters]
    return str(desk)


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Tickets without end: 3 to 5 desks of two matters each; one ticket in six reports an injury."""
    pack = part.pack
    for identity in part.ids(SOURCE):
        desks = draw.sample(TEAMS[pack], draw.between(3, 5))
        matters = draw.sample(MATTERS[pack], 2 * len(desks))
        handles = {desk: [matters.pop(), matters.pop()] for desk in desks}
        matter = draw.pick([matter for both in handles.values() for matter in both])
        facts = {"handles": handles, "matter": matter, "hurt": draw.chance(1 / 6), "first": draw.pick(desks)}
        sentences = [
            draw.pick(OPENINGS[pack]).format(person=draw.pick(PEOPLE[pack]), matter=matter),
            *([INJURY[pack]] if facts["hurt"] else []),
            draw.pick(CLOSINGS[pack]).format(place=draw.pick(PLACES[pack])),
        ]
        options: dict[str, str | None] = {desk: " and ".join(both) for desk, both in handles.items()}
        yield [
            DataRecord.build(
                {"ticket": " ".join(sentences)},
                choice(INSTRUCTIONS.format(desk=facts["first"]), options, solve(facts), SOURCE),
                id=identity,
                source=SOURCE,
                facts=facts,
            )
        ]
