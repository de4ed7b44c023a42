"""Long states: one record buried among others, and the same record alone as its control."""

from collections.abc import Iterator
from itertools import count

from kev.data import dates, levels, tickets
from kev.data.draw import Draw
from kev.data.part import Part
from kev.data.record import DataRecord
from kev.data.render import render

SOURCE = "long_state"
CONTROL = "long_state_control"

LENGTHS = (1024, 2048)
"""Wanted sizes in bytes of UTF-8, since no tokenizer has more tokens than bytes."""

TOLERANCE = 1.25

NOTE = "Several entries follow. The question is about entry {slot} only."


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """A control and its buried copy, without end; they share a group. Copies past 1.25 of their size are left out."""
    primaries = [kind.generate(draw, part) for kind in (tickets, levels, dates)]
    for number in count():
        [primary] = next(draw.pick(primaries))
        identity = f"{SOURCE}/{part.name}/{number:04d}"
        [answer] = primary.to_json()["questions"].values()
        length = draw.pick(LENGTHS)
        state, slot = bury(draw, primary, primaries, length)
        if len(state.encode()) > TOLERANCE * length:
            continue
        shared = {"group_id": identity, "parent_source": primary.meta.source}
        control = DataRecord.build(
            primary.state,
            {"answer": {**answer, "src": f"{CONTROL}_{primary.meta.source}"}},
            id=f"{CONTROL}/{part.name}/{number:04d}",
            source=CONTROL,
            **shared,
        )
        buried = DataRecord.build(
            state,
            {"answer": {**answer, "src": f"{SOURCE}_{primary.meta.source}"}},
            id=identity,
            source=SOURCE,
            primary_slot=slot,
            length=length,
            **shared,
        )
        yield [control, buried]


def bury(draw: Draw, primary: DataRecord, others: list[Iterator[list[DataRecord]]], length: int) -> tuple[str, int]:
    """The text of `primary` among enough of `others` to reach `length` bytes, and its entry's number from 1."""
    entries = []
    size = len(render(primary.state).encode())
    while size < length:
        [other] = next(draw.pick(others))
        entries.append(render(other.state))
        size += len(entries[-1].encode()) + 12
    slot = draw.below(len(entries) + 1)
    entries.insert(slot, render(primary.state))
    numbered = [f"Entry {number}\n{text}" for number, text in enumerate(entries, start=1)]
    return "\n\n".join([NOTE.format(slot=slot + 1), *numbered]), slot + 1
