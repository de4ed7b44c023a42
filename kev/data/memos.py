"""Short memos and bulletins whose answers stand in them word for word, with labels that are wrong at a known rate.

They are for showing that training works: a model of half a million weights learns them in a minute, and the best that
any model can do is known. Memos and bulletins ask for the same facts in other sentences, so that what is fitted on
bulletins is not fitted on memos. Checked memos carry the solver's own labels: a model that is trained on them has never
seen a wrong label, and is too sure of itself wherever labels are wrong. They are in no frozen suite.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Part
from kev.data.record import DataRecord

NAMES = ("amber", "birch", "coral", "delta", "ember", "flint", "grove", "haven")
PLACES = ("desk", "room", "shelf")
"""What a note names; a question about each offers one name that stands in the text and three that do not."""

SIZES = ("small", "medium", "large")
OFFERED = 4

NOISE = {"desk": 0.12, "room": 0.12, "shelf": 0.12, "signed": 0.10, "size": 0.08}
"""How often each label is another option than the right one."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of one kind of note."""

    source: str
    opening: tuple[str, ...]
    place: str
    """The name stands in quotation marks: after a blank a tokenizer would write it otherwise than as an option."""
    signed: tuple[str, str]
    size: str
    filler: tuple[str, ...]


QUESTIONS = {
    "desk": "Which desk?",
    "room": "Which room?",
    "shelf": "Which shelf?",
    "signed": "Is it signed?",
    "size": "How big?",
}
MEMO = Wording(
    "memos",
    ("A note from the front office.", "For the attention of all.", "This came in before noon."),
    'The {place} is "{name}".',
    ("It was left open.", "It was signed."),
    "The box is {size}.",
    ("The lift is slow today.", "Tea is at four.", "The door sticks.", "Please keep the hall clear.", "It may rain."),
)
BULLETIN = Wording(
    "bulletins",
    ("Bulletin of the day.", "Posted on the board.", "Heard at the gate."),
    'Look for {place} "{name}".',
    ("By now it was left open.", "By now it was signed."),
    "Mind that the box is {size}.",
    ("The gate is shut.", "Rain at four.", "The hall is clear.", "No tea today.", "The box room is slow."),
)


def solve(facts: dict[str, Any]) -> dict[str, Any]:
    """The right answers."""
    places = {place: facts[place] for place in PLACES}
    return {**places, "signed": facts["signed"], "size": SIZES.index(facts["size"])}


def ceiling(question: str) -> float:
    """The share of labels that are right: no model gets more of a question's labels on average."""
    return 1 - NOISE[question]


def generate_memos(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Memos without end."""
    yield from _generate(draw, part, MEMO)


def generate_checked_memos(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Memos without end, of which every label is right."""
    yield from _generate(draw, part, MEMO, checked=True)


def generate_bulletins(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Bulletins without end."""
    yield from _generate(draw, part, BULLETIN)


def _generate(draw: Draw, part: Part, wording: Wording, *, checked: bool = False) -> Iterator[list[DataRecord]]:
    for identity in part.ids(wording.source):
        names = draw.shuffled(NAMES)
        named, others = dict(zip(PLACES, names, strict=False)), names[len(PLACES) :]
        facts = {**named, "signed": draw.chance(0.5), "size": draw.pick(SIZES)}
        offered = {place: draw.shuffled([name, *draw.sample(others, OFFERED - 1)]) for place, name in named.items()}
        labels = solve(facts) if checked else _noisy(draw, solve(facts), offered)
        yield [
            DataRecord.build(
                {"note": _text(draw, wording, facts)},
                _questions(wording, offered, labels),
                id=identity,
                source=wording.source,
                facts=facts,
            )
        ]


def _text(draw: Draw, wording: Wording, facts: dict[str, Any]) -> str:
    telling = [
        *(wording.place.format(place=place, name=facts[place]) for place in PLACES),
        wording.signed[facts["signed"]],
        wording.size.format(size=facts["size"]),
    ]
    return " ".join([draw.pick(wording.opening), *draw.shuffled([*telling, *draw.sample(wording.filler, 2)])])


def _noisy(draw: Draw, right: dict[str, Any], offered: dict[str, list[str]]) -> dict[str, Any]:
    """The answers as they are labelled: now and then another option, each of them as likely."""
    options: dict[str, list[Any]] = {**offered, "signed": [False, True], "size": [0, 1, 2]}
    labels = {}
    for name, answer in right.items():
        others = [each for each in options[name] if each != answer]
        labels[name] = draw.pick(others) if draw.chance(NOISE[name]) else answer
    return labels


def _questions(wording: Wording, offered: dict[str, list[str]], labels: dict[str, Any]) -> dict[str, dict[str, Any]]:
    def asked(name: str, kind: str, criteria: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "instructions": QUESTIONS[name],
            "criteria": criteria,
            "label": labels[name],
            "src": f"{wording.source}_{name}",
        }

    return {
        **{place: asked(place, "choice", dict.fromkeys(names)) for place, names in offered.items()},
        "signed": asked("signed", "noul", None),
        "size": asked("size", "score", list(SIZES)),
    }
