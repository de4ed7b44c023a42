"""What the provider's billing answers: the metered total of the cycle, and the rows of one round's apps.

Only a finite, non-negative JSON number is a reading. Whatever else comes back means that the spend is unknown, which
is not the same as nothing spent: nothing may be launched on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from kev import files
from kev.records.base import StrictRecord


@dataclass(frozen=True, slots=True)
class MeteredCost:
    """One answer of `modal billing summary --json`: dollars metered since the cycle began, or why they are unknown."""

    usd: Decimal | None
    problem: str | None = None


def read_metered_cost(answer: object) -> MeteredCost:
    """The `metered_cost` of a decoded billing answer. Never raises: an answer that is no reading says why."""
    if not isinstance(answer, Mapping):
        return MeteredCost(None, "the billing answer is no object")
    if "metered_cost" not in answer:
        return MeteredCost(None, "the billing answer has no metered_cost")
    value = answer["metered_cost"]
    number = files.as_finite(value)
    if number is None:
        return MeteredCost(None, f"metered_cost is {value!r:.40}, no finite number")
    if number < 0:
        return MeteredCost(None, f"metered_cost is {value}, below zero")
    return MeteredCost(Decimal(str(value)))


def _check_decimal_text(value: str) -> str:
    try:
        amount = Decimal(value)
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite():
        raise PydanticCustomError("money_text", "input should be an amount in US dollars, as decimal text")
    return value


MoneyText = Annotated[str, AfterValidator(_check_decimal_text)]
"""US dollars as decimal text, the form of billing rows; `Decimal(text)` is exact."""


class BillingRow(StrictRecord):
    """One app on one UTC day."""

    object_id: str
    description: str | None = None
    environment_name: str | None = None
    interval: str
    """Midnight of the day, ISO 8601."""
    cost: MoneyText
    cost_by_resource: dict[str, MoneyText] = {}
    """Rounded apart from `cost`, so the parts may miss it in the last place."""


class ScopedBilling(StrictRecord):
    """Billing rows of the apps of one round. Apps that cost nothing have no row."""

    start: str
    end: str
    app_ids: list[str] = []
    observed_at: str
    response: list[BillingRow]
    total: MoneyText
    provisional: bool | None = None

    def sum_of_rows(self) -> Decimal:
        return sum((Decimal(row.cost) for row in self.response), Decimal(0))
