"""Starting reserved units one after the other, so that a second run starts only what is missing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kev.compute.errors import RemoteError
from kev.gate import AlreadyStarted
from kev.rounds.engine import Engine


@dataclass
class Started:
    """What became of every unit that was asked for."""

    calls: dict[str, str] = field(default_factory=dict)
    already: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    """Whether it runs is not known: the next watch finds out."""

    def to_json(self) -> dict[str, Any]:
        return {"started": self.calls, "already": self.already, "unknown": self.unknown}


async def start_all(engine: Engine, units: Iterable[str], stagger_s: float) -> Started:
    """Start `units`, `stagger_s` between one name and the next. Raises what refuses a spawn for good."""
    done = Started()
    last_name: str | None = None
    for unit_id in units:
        unit = engine.ledger.read().by_id[unit_id]
        if unit.counted or unit.settled:
            done.already.append(unit_id)
            continue
        if last_name not in (None, unit.order.name):
            await engine.gate.sleep(stagger_s)
        last_name = unit.order.name
        try:
            ref = await engine.gate.start(unit_id)
        except AlreadyStarted:
            done.already.append(unit_id)
            continue
        except RemoteError as error:
            if not error.may_have_happened:
                raise
            done.unknown[unit_id] = str(error)
            engine.say(f"!!! {unit_id}: whether it started is not known ({error}); watch will find it")
        else:
            done.calls[unit_id] = ref.id
            engine.say(f"{unit_id}: {ref.id}")
        finally:
            engine.gate.show(unit.order.name)
    return done
