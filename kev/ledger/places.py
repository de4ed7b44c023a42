"""Where a unit writes: on the runs volume, and where that comes to in the checkout."""

from kev.records.ledger import Order
from kev.worker.orders import blend_directory


def parts_of(order: Order) -> list[tuple[str, str]]:
    """(directory on the runs volume, directory under the root) of everything that a unit writes; none of what has none.

    The mixed checkpoints of a study lie beside each other, each the place of one blend.
    """
    if order.kind == "blend":
        payload = order.payload
        names = [blend_directory(payload["study"], payload["prefix"], alpha) for alpha in payload["alphas"]]
        return [(name, f"runs/{name}") for name in names]
    return [(order.remote, order.local)] if order.remote else []
