"""What each frozen suite is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kev.data import (
    calendar,
    counts,
    dates,
    delegation,
    levels,
    longstates,
    parcels,
    policies,
    stock,
    suppliers,
    tickets,
    unknowable,
)
from kev.data.part import Generator
from kev.data.record import CONTROL, UNKNOWABLE


@dataclass(frozen=True, slots=True)
class Ingredient:
    """A generator, the sources its records carry, and how many groups of it each partition takes."""

    generator: Generator
    sources: tuple[str, ...]
    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """A suite to freeze. A source outside `trainable` may never be trained on."""

    name: str
    description: str
    seed: int
    ingredients: tuple[Ingredient, ...]
    trainable: tuple[str, ...] = ()
    held_out: tuple[str, ...] = field(default=())
    further: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the manifest beyond, or in place of, those of a generated suite."""

    @property
    def partitions(self) -> list[str]:
        """The partitions that any ingredient goes into, in the order of their use."""
        used = {name for ingredient in self.ingredients for name in ingredient.groups}
        return [name for name in ("train", "calibration", "development", "test") if name in used]


def _parts(train: int = 0, calibration: int = 0, development: int = 0, test: int = 0) -> dict[str, int]:
    wanted = {"train": train, "calibration": calibration, "development": development, "test": test}
    return {name: groups for name, groups in wanted.items() if groups}


HELD_OUT = (policies.HELD_OUT_SOURCE, UNKNOWABLE, CONTROL, longstates.SOURCE, longstates.CONTROL)

SUITES = (
    SuitePlan(
        "decision-v1",
        "What a model is trained on and first judged by: policy pairs, ticket routing, levels and dates.",
        seed=1,
        ingredients=(
            Ingredient(policies.generate, (policies.SOURCE,), _parts(160, 20, 30, 30)),
            Ingredient(tickets.generate, (tickets.SOURCE,), _parts(240, 40, 60, 60)),
            Ingredient(levels.generate, (levels.SOURCE,), _parts(240, 40, 60, 60)),
            Ingredient(dates.generate, (dates.SOURCE,), _parts(240, 40, 60, 60)),
        ),
        trainable=(policies.SOURCE, tickets.SOURCE, levels.SOURCE, dates.SOURCE),
        held_out=HELD_OUT,
    ),
    SuitePlan(
        "transfer-v1",
        "What is never trained on: held-out policy families, unknowable twins, and records buried among others.",
        seed=2,
        ingredients=(
            Ingredient(policies.generate_held_out, (policies.HELD_OUT_SOURCE,), _parts(development=40, test=40)),
            Ingredient(unknowable.generate, (UNKNOWABLE, CONTROL), _parts(development=40, test=40)),
            Ingredient(longstates.generate, (longstates.SOURCE, longstates.CONTROL), _parts(development=20, test=20)),
        ),
    ),
    SuitePlan(
        "skills-v1",
        "Two skills that take several steps: who signs along a chain of substitutes, and the cheapest fitting offer.",
        seed=3,
        ingredients=(
            Ingredient(delegation.generate, (delegation.SOURCE,), _parts(120, 0, 100, 100)),
            Ingredient(suppliers.generate, (suppliers.SOURCE,), _parts(120, 0, 100, 100)),
        ),
        trainable=(delegation.SOURCE, suppliers.SOURCE),
    ),
    SuitePlan(
        "heldout-stock-v1",
        "Held-out data for temperatures: stock lists and bookings, of generators that no training suite uses.",
        seed=4,
        ingredients=(
            Ingredient(stock.generate, (stock.SOURCE,), _parts(0, 80, 60, 60)),
            Ingredient(calendar.generate, (calendar.SOURCE,), _parts(0, 80, 60, 60)),
        ),
    ),
    SuitePlan(
        "heldout-counts-v1",
        "More held-out data for temperatures, by other generators again: counts above a limit and parcel classes.",
        seed=5,
        ingredients=(
            Ingredient(counts.generate, (counts.SOURCE,), _parts(0, 80, 60, 60)),
            Ingredient(parcels.generate, (parcels.SOURCE,), _parts(0, 80, 60, 60)),
        ),
    ),
)
