"""Which code this is: a hash of every source file, compared before money is spent and again in the container."""

import hashlib
from collections.abc import Mapping

from kev.errors import Refused
from kev.evaluators import source_hashes
from kev.worker.container import Container
from kev.worker.orders import Order

__all__ = ["check_sources", "digest", "source_hashes"]


def digest(hashes: Mapping[str, str]) -> str:
    """One hash that is equal exactly where all of `hashes` are."""
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def check_sources(order: Order, container: Container) -> dict[str, str]:
    """The hashes of this container's sources. Raises Refused if they are not the launcher's."""
    hashes = source_hashes(container.root)
    if digest(hashes) != order.sources:
        raise Refused(f"{order.run_id}: the deployed sources are not the launcher's; deploy again and launch anew")
    return hashes
