"""Where the questions come from: generated without end, each with the answer that its solver gives."""

from collections.abc import Iterator, Sequence
from itertools import cycle

from kev.data import dates, delegation, levels, memos, policies, suppliers, tickets
from kev.data.draw import Draw
from kev.data.part import Generator, Part
from kev.data.record import DataRecord
from kev.errors import UsageError
from kev.spelling import nearest

ENVIRONMENTS: dict[str, Generator] = {
    policies.SOURCE: policies.generate,
    tickets.SOURCE: tickets.generate,
    levels.SOURCE: levels.generate,
    dates.SOURCE: dates.generate,
    delegation.SOURCE: delegation.generate,
    suppliers.SOURCE: suppliers.generate,
    "memos": memos.generate_memos,
}
"""Generators that a suite lets be trained on. Those that temperatures are fitted with are not among them."""


def draw_records(names: Sequence[str], count: int, *, seed: int, part: str = "train") -> list[DataRecord]:
    """`count` records of the environments `names`, in turns, group by group.

    Equal arguments give equal records, and a longer list begins with the shorter one. `part` chooses the texts: those
    of `development` share no sentence with those of `train`, except for memos, which have one set. Raises UsageError
    for a name that is no environment.
    """
    for name in names:
        if name not in ENVIRONMENTS:
            raise UsageError(f"no environment {name}{nearest(name, ENVIRONMENTS)}; there are {', '.join(ENVIRONMENTS)}")
    streams = [ENVIRONMENTS[name](Draw(seed, f"rl:{name}:{part}"), Part.named(part)) for name in names]
    found: list[DataRecord] = []
    for group in _in_turns(streams):
        if len(found) >= count:
            break
        found += group
    return found[:count]


def _in_turns(streams: Sequence[Iterator[list[DataRecord]]]) -> Iterator[list[DataRecord]]:
    for stream in cycle(streams):
        yield next(stream)
