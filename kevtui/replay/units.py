"""When each study and batch of reads was launched and settled, by the ledger of all remote work."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kevtui.replay.versions import event_time, object_in

_OPENS = frozenset({"wanted", "intent", "call"})


class Units:
    """`data` holds `runs/ledger.jsonl`; a line that cannot be read says nothing."""

    def __init__(self, data: bytes = b"") -> None:
        self._of: dict[str, str] = {}
        self._moves: dict[str, list[tuple[datetime, str, bool]]] = defaultdict(list)
        """Name of a study or batch -> (moment, unit, whether it is settled from then on), as written."""
        for line in data.split(b"\n"):
            value = object_in(line)
            at = event_time(value) if value is not None else None
            if value is not None and at is not None:
                for unit, settled in self._told(value):
                    if unit in self._of:
                        self._moves[self._of[unit]].append((at, unit, settled))

    def _told(self, value: dict[str, Any]) -> Iterator[tuple[str, bool]]:
        event, unit = value.get("event"), value.get("unit")
        orders = value.get("orders")
        if event == "wanted" and isinstance(orders, dict):
            for name, order in orders.items():
                if isinstance(order, dict) and isinstance(order.get("name"), str):
                    self._of[name] = order["name"]
                    yield name, False
        elif isinstance(unit, str) and event == "settled":
            yield unit, True
        elif isinstance(unit, str) and event in _OPENS:
            yield unit, False

    @property
    def launched(self) -> dict[str, datetime]:
        """When the first unit of each study and batch was wanted."""
        return {name: min(at for at, _, _ in moves) for name, moves in self._moves.items() if moves}

    def settled(self, name: str, at: datetime) -> bool | None:
        """Whether nothing more of `name` could be spent at `at`; None where the ledger does not know it."""
        last = {unit: settled for moment, unit, settled in self._moves.get(name, ()) if moment <= at}
        return all(last.values()) if last else None
