"""Unknowable twins: a record whose deciding sentence was taken out, beside the same record with it.

An unknowable record carries a uniform target and is never scored for accuracy: what counts is that a model is not
sure where nobody could be. Its intact twin shows that the model was not merely timid.
"""

from collections.abc import Iterator
from typing import Any

from kev.data import dates, levels
from kev.data.draw import Draw
from kev.data.part import Part
from kev.data.record import CONTROL, UNKNOWABLE, DataRecord


def generate(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
    """Twins without end, control first; they share a group, so that resampling never separates them."""
    identities = zip(part.ids(UNKNOWABLE), part.ids(CONTROL), strict=True)
    for identity, control_identity in identities:
        kind, name, deciding = draw.pick([(levels, "levels", "value"), (dates, "dates", "end")])
        facts = kind.draw_facts(draw, part.pack)
        *rest, decisive = kind.sentences(part.pack, facts)
        undecided = {**facts, deciding: None}
        assert kind.solve(undecided) is None
        control = DataRecord.build(
            " ".join([*rest, decisive]),
            kind.question(facts, f"{CONTROL}_{name}"),
            id=control_identity,
            source=CONTROL,
            group_id=control_identity,
            facts=facts,
        )
        twin = DataRecord.build(
            " ".join(rest),
            _flat(kind.question(facts, f"{UNKNOWABLE}_{name}")),
            id=identity,
            source=UNKNOWABLE,
            group_id=control_identity,
            control_id=control_identity,
            facts=undecided,
        )
        yield [control, twin]


def _flat(questions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    # The label stays that of the twin, since the format asks for one; no metric reads it.
    answer = questions["answer"]
    keys = ["false", "true"] if answer["type"] == "noul" else [str(n) for n in range(len(answer["criteria"]))]
    return {"answer": {**answer, "target": {key: 1 / len(keys) for key in keys}}}
