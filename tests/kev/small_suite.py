"""Two small suites, frozen by the generators that made the real ones."""

from pathlib import Path

from kev.data import dates, levels, policies
from kev.data.freeze import freeze
from kev.data.suites import Ingredient, SuitePlan
from kev.suite import Suite, open_suite

TRAINING = SuitePlan(
    "small-v1",
    "A few records of three kinds.",
    seed=41,
    ingredients=(
        Ingredient(policies.generate, (policies.SOURCE,), {"train": 6, "calibration": 2, "development": 3, "test": 3}),
        Ingredient(levels.generate, (levels.SOURCE,), {"train": 14, "calibration": 6, "development": 6, "test": 6}),
        Ingredient(dates.generate, (dates.SOURCE,), {"train": 14, "calibration": 6, "development": 6, "test": 6}),
    ),
    trainable=(policies.SOURCE, levels.SOURCE, dates.SOURCE),
    held_out=(policies.HELD_OUT_SOURCE,),
)
TRANSFER = SuitePlan(
    "small-transfer-v1",
    "A few records of a kind that is not trained on.",
    seed=42,
    ingredients=(Ingredient(policies.generate_held_out, (policies.HELD_OUT_SOURCE,), {"development": 4, "test": 4}),),
)


def write_suites(root: Path) -> tuple[Suite, Suite]:
    """Both suites under `root`/evals: to train on, and to transfer to."""
    for plan in (TRAINING, TRANSFER):
        freeze(root / "evals", plan)
    return open_suite(root / "evals" / TRAINING.name), open_suite(root / "evals" / TRANSFER.name)
