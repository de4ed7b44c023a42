"""Contrastive pairs: a policy and two cases that differ in one sentence, which turns the answer round.

A pair is kept only if its label needs every sentence that carries a fact: without any one of them the solver cannot
say. So neither the wording of the policy nor that of the case alone gives the answer away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, noul
from kev.data.record import DataRecord

SOURCE = "policies"
HELD_OUT_SOURCE = "policies_held_out"


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of rule: how it is written in each pack, and the numbers it is about.

    `at_least` says which way the limit cuts. `rule` has {limit}; `tiered` has {low} and {high} and the two standings.
    """

    name: str
    numbers: range
    at_least: bool
    rule: dict[Pack, str]
    tiered: dict[Pack, str]
    case: dict[Pack, str]
    standing: tuple[str, str]
    question: str


FILLERS = {
    Pack.TRAIN: ("The form was filled in by hand.", "A copy went to the archive.", "The desk was busy that morning."),
    Pack.DEVELOPMENT: ("The note has no attachment.", "The office had moved the week before."),
    Pack.TEST: ("Nobody had phoned ahead.", "The page was printed twice."),
}

STANDING = {
    Pack.TRAIN: "The person is a {standing}.",
    Pack.DEVELOPMENT: "On file they count as a {standing}.",
    Pack.TEST: "Their card says {standing}.",
}


def solve(facts: dict[str, Any]) -> bool | None:
    """Whether the policy allows the case; None where the facts that are there do not settle it.

    Facts: `limits` {standing: limit}, `at_least`, `value`, `standing`.
    """
    limits, value = facts.get("limits"), facts.get("value")
    if limits is None or value is None:
        return None
    standing = facts.get("standing")
    relevant = limits.values() if standing is None else [limits[standing]]
    answers = {value >= limit if facts["at_least"] else value <= limit for limit in relevant}
    return answers.pop() if len(answers) == 1 else None


def pairs(draw: Draw, part: Part, *, families: tuple[Family, ...], source: str) -> Iterator[list[DataRecord]]:
    """Pairs of siblings without end; half of them have a limit that depends on the person's standing."""
    ids = part.ids(source)
    while True:
        family = draw.pick(families)
        two = _tiered(draw, family) if draw.chance(0.5) else _plain(draw, family)
        if not all(decided_by_everything(facts) for facts in two):
            continue
        fillers = draw.sample(FILLERS[part.pack], draw.below(3))
        positions = [draw.below(3) for _ in fillers]
        first, second = next(ids), next(ids)
        yield [
            DataRecord.build(
                _state(family, part.pack, facts, fillers, positions),
                noul(family.question, bool(solve(facts)), f"{source}_{family.name}"),
                id=identity,
                source=source,
                group_id=first,
                pair_id=first,
                sibling=sibling,
                family=family.name,
                facts=facts,
            )
            for facts, identity, sibling in zip(two, (first, second), "ab", strict=True)
        ]


def decided_by_everything(facts: dict[str, Any]) -> bool:
    """Whether the solver answers, and stops answering when any one fact that a sentence carries is taken away."""
    carried = [key for key in ("limits", "value", "standing") if key in facts]
    return solve(facts) is not None and all(
        solve({key: fact for key, fact in facts.items() if key != missing}) is None for missing in carried
    )


def _plain(draw: Draw, family: Family) -> list[dict[str, Any]]:
    limit = draw.pick(family.numbers[3:-3])
    cases = [{"limits": {"all": limit}, "at_least": family.at_least, "value": value} for value in family.numbers]
    allowed, refused = (draw.pick([case for case in cases if solve(case) is answer]) for answer in (True, False))
    return draw.shuffled([allowed, refused])


def _tiered(draw: Draw, family: Family) -> list[dict[str, Any]]:
    low, value, high = sorted(draw.sample(family.numbers, 3))
    limits = dict(zip(family.standing, (low, high), strict=True))
    return [
        {"limits": limits, "at_least": family.at_least, "value": value, "standing": standing}
        for standing in draw.shuffled(family.standing)
    ]


def _state(
    family: Family, pack: Pack, facts: dict[str, Any], fillers: list[str], positions: list[int]
) -> dict[str, str]:
    limits = facts["limits"]
    if "standing" in facts:
        first, second = family.standing
        policy = family.tiered[pack].format(low=limits[first], high=limits[second], first=first, second=second)
    else:
        policy = family.rule[pack].format(limit=limits["all"])
    sentences = [family.case[pack].format(value=facts["value"])]
    if "standing" in facts:
        sentences.append(STANDING[pack].format(standing=facts["standing"]))
    for filler, position in zip(fillers, positions, strict=True):
        sentences.insert(min(position, len(sentences)), filler)
    return {"policy": policy, "case": " ".join(sentences)}


def _packs(train: str, development: str, test: str) -> dict[Pack, str]:
    return dict(zip(Pack, (train, development, test), strict=True))


TRAINED = (
    Family(
        "spend",
        range(20, 900, 10),
        at_least=False,
        rule=_packs(
            "A purchase of up to {limit} dollars needs no approval.",
            "Spending is free of approval as long as it stays within {limit} dollars.",
            "No signature is asked for at {limit} dollars or less.",
        ),
        tiered=_packs(
            "Without approval a {first} may spend up to {low} dollars and a {second} up to {high} dollars.",
            "Free of approval: {low} dollars for a {first}, {high} dollars for a {second}.",
            "No signature is asked for up to {low} dollars ({first}) or {high} dollars ({second}).",
        ),
        case=_packs(
            "The purchase cost {value} dollars.", "They spent {value} dollars.", "The bill came to {value} dollars."
        ),
        standing=("clerk", "manager"),
        question="Is the purchase allowed without approval?",
    ),
    Family(
        "return",
        range(5, 120),
        at_least=False,
        rule=_packs(
            "Goods may come back within {limit} days of delivery.",
            "We take goods back for {limit} days after delivery.",
            "The time for returns is {limit} days from delivery.",
        ),
        tiered=_packs(
            "Goods may come back within {low} days for a {first} and within {high} days for a {second}.",
            "We take goods back for {low} days from a {first} and for {high} days from a {second}.",
            "The time for returns is {low} days ({first}) or {high} days ({second}).",
        ),
        case=_packs(
            "The parcel came back {value} days after delivery.",
            "They returned it on day {value} after delivery.",
            "It was handed in {value} days after it was delivered.",
        ),
        standing=("guest", "member"),
        question="Is the return in time?",
    ),
    Family(
        "age",
        range(6, 80),
        at_least=True,
        rule=_packs(
            "The course is open to anyone aged {limit} or more.",
            "Joining takes an age of at least {limit}.",
            "Nobody younger than {limit} may join.",
        ),
        tiered=_packs(
            "The course is open from age {low} for a {first} and from age {high} for a {second}.",
            "Joining takes an age of at least {low} ({first}) or {high} ({second}).",
            "Nobody may join who is younger than {low} as a {first} or {high} as a {second}.",
        ),
        case=_packs("The applicant is {value} years old.", "They are aged {value}.", "Their age is {value}."),
        standing=("resident", "visitor"),
        question="May the applicant join?",
    ),
)

HELD_OUT = (
    Family(
        "weight",
        range(4, 90),
        at_least=False,
        rule=_packs(
            "The lift carries loads of up to {limit} kilograms.",
            "Loads in the lift may weigh {limit} kilograms at most.",
            "Anything over {limit} kilograms must not go in the lift.",
        ),
        tiered=_packs(
            "The lift carries up to {low} kilograms for a {first} and up to {high} kilograms for a {second}.",
            "Loads may weigh {low} kilograms ({first}) or {high} kilograms ({second}) at most.",
            "A {first} must not lift over {low} kilograms, a {second} not over {high} kilograms.",
        ),
        case=_packs(
            "The load weighs {value} kilograms.", "The scales show {value} kilograms.", "It is {value} kilograms heavy."
        ),
        standing=("trainee", "porter"),
        question="May the load go in the lift?",
    ),
    Family(
        "notice",
        range(2, 60),
        at_least=True,
        rule=_packs(
            "Leave is granted with {limit} days of notice or more.",
            "Leave takes at least {limit} days of notice.",
            "With fewer than {limit} days of notice leave is refused.",
        ),
        tiered=_packs(
            "Leave takes {low} days of notice from a {first} and {high} days from a {second}.",
            "At least {low} days of notice ({first}) or {high} days ({second}) are needed for leave.",
            "Leave is refused below {low} days of notice for a {first} and {high} days for a {second}.",
        ),
        case=_packs(
            "The request came {value} days ahead.", "They asked {value} days before.", "Notice given: {value} days."
        ),
        standing=("part-timer", "full-timer"),
        question="Is the leave granted?",
    ),
)

generate = partial(pairs, families=TRAINED, source=SOURCE)
"""Pairs of the families that a model may be trained on."""

generate_held_out = partial(pairs, families=HELD_OUT, source=HELD_OUT_SOURCE)
"""Pairs of the families that no training partition holds."""
