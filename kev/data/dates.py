"""Date arithmetic: whether something happened within a number of days of something else."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from kev.data.draw import Draw
from kev.data.part import Pack, Part, noul
from kev.data.record import DataRecord

SOURCE = "dates"

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

# (the rule, the start, the end), with {days} and {day}
STORIES = {
    Pack.TRAIN: (
        ("A claim must come within {days} days of the damage.", "The damage was on {day}.", "The claim came on {day}."),
        ("The fee is due within {days} days of the order.", "The order is of {day}.", "The fee was paid on {day}."),
        ("One may appeal for {days} days after the ruling.", "The ruling fell on {day}.", "The appeal is of {day}."),
    ),
    Pack.DEVELOPMENT: (
        ("The key must be back {days} days after leaving.", "They left on {day}.", "The key was back on {day}."),
    ),
    Pack.TEST: (
        ("A book may be kept for {days} days.", "It was lent on {day}.", "It was brought back on {day}."),
        ("The sample keeps for {days} days once opened.", "It was opened on {day}.", "It was used on {day}."),
    ),
}  # fmt: skip

INSTRUCTIONS = "Was it in time?"


def solve(facts: dict[str, Any]) -> bool | None:
    """Whether the end is within the days; None without a start or an end. Facts: `start`, `end` (ISO), `days`."""
    if facts.get("start") is None or facts.get("end") is None:
        return None
    return (date.fromisoformat(facts["end"]) - date.fromisoformat(facts["start"])).days <= int(facts["days"])


def draw_facts(draw: Draw, pack: Pack) -> dict[str, Any]:
    """A story with both answers equally likely; half of the ends are within three days of the limit."""
    start = date(2021, 1, 1) + timedelta(days=draw.below(4 * 365))
    days = draw.between(7, 90)
    margin = draw.below(3) if draw.chance(0.5) else draw.below(days)
    lasted = days - margin if draw.chance(0.5) else days + 1 + margin
    end = start + timedelta(days=lasted)
    return {
        "story": draw.below(len(STORIES[pack])),
        "written": draw.chance(0.5),
        "start": start.isoformat(),
        "end": end.isoformat(),
        "days": days,
    }


def sentences(pack: Pack, facts: dict[str, Any]) -> list[str]:
    """The text in sentences; the last one alone holds the end."""
    rule, start, end = STORIES[pack][facts["story"]]
    written = facts["written"]
    return [
        rule.format(days=facts["days"]),
        start.format(day=spell(date.fromisoformat(facts["start"]), written=written)),
        end.format(day=spell(date.fromisoformat(facts["end"]), written=written)),
    ]


def spell(day: date, *, written: bool) -> str:
    """`March 3, 2024`, or ISO. Month names are our own, since those of the system follow its language."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}" if written else day.isoformat()


def question(facts: dict[str, Any], src: str) -> dict[str, dict[str, Any]]:
    """The question about a text made from `facts`, with its label."""
    label = solve(facts)
    assert label is not None
    return noul(INSTRUCTIONS, label, src)


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Stories without end. The last day still counts."""
    for identity in part.ids(SOURCE):
        facts = draw_facts(draw, part.pack)
        text = " ".join(sentences(part.pack, facts))
        yield [DataRecord.build(text, question(facts, SOURCE), id=identity, source=SOURCE, facts=facts)]
