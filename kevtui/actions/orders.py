"""What a launch would order: what of it is missing, what that may cost, and how far it has come."""

from collections.abc import Iterable
from decimal import Decimal

from kev.records.ledger import Order
from kev.rounds.trial_orders import Wanted
from kevtui import format as shown
from kevtui.actions.truth import Truth, known


def bound_of(orders: Iterable[Order]) -> Decimal:
    """The most that `orders` can cost, US dollars."""
    return sum((order.attempt_usd * order.attempts for order in orders), Decimal(0))


def is_large(bound: Decimal | None, above_usd: float) -> bool:
    """Whether the name must be typed; of what may cost nobody knows what, it must."""
    return bound is None or bound > Decimal(str(above_usd))


def by_study(wanted: list[Wanted]) -> dict[str, list[Order]]:
    found: dict[str, list[Order]] = {}
    for _, order in wanted:
        found.setdefault(order.name, []).append(order)
    return found


def cards_of(orders: list[Order]) -> str:
    """As in `2 × H200, 4 h 00 each, $50.12`."""
    first = orders[0]
    tries = f", up to {first.attempts} attempts" if first.attempts > 1 else ""
    gpus = ", ".join(dict.fromkeys(order.gpu or "no card" for order in orders))
    return f"{len(orders)} × {gpus}, {shown.age(first.timeout)} each{tries}, {shown.money(bound_of(orders))}"


def missing_of(truth: Truth, wanted: list[Wanted]) -> list[Wanted]:
    """Those of `wanted` of which nothing was started. Raises DamagedFile."""
    units = truth.units.by_id
    return [(name, order) for name, order in wanted if name not in units or not units[name].counted]


def states_of(truth: Truth, wanted: list[Wanted]) -> list[str]:
    """How far each of `wanted` has come, for a digest."""

    def look() -> list[str]:
        units = truth.units.by_id
        return [
            f"{name} {len(units[name].counted)} {units[name].outcome}" if name in units else f"{name} new"
            for name, _ in wanted
        ]

    return known(look)
