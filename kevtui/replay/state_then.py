"""The session's state as it was at a moment: its readings have times, and most of the rest has the time of a launch.

The file holds only what is so at its end. Of an earlier moment it says which readings there were; that a study was
launched by then is said by its ledger, and by nothing where there is none.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kevtui.replay.units import Units
from kevtui.replay.versions import Then, earliest, moment_of, to_ns

NOT_RECORDED = "running or done, as of then not recorded"
"""The status of a study that had been launched: in doubt its bound still counts."""

_OF_THE_END = ("candidates", "candidates_unpublished", "decisions", "pending_decisions", "closed_reason")


class StateThen:
    """`launches` and `batches` are when each study and each batch of reads was launched, as far as that is known."""

    def __init__(
        self,
        value: dict[str, Any],
        written: datetime,
        launches: Mapping[str, datetime],
        batches: Mapping[str, datetime],
        units: Units,
    ) -> None:
        self._value, self._written = value, written
        self._launches, self._batches, self._units = launches, batches, units
        self._is_night = "session" not in value and "night" in value
        self.readings = self._find_readings()
        opened = moment_of(value.get("start_local" if self._is_night else "opened_at"))
        self.opened = earliest(opened, *self.readings) or written

    @property
    def untimed(self) -> int:
        """How many studies and reads it lists of which no launch is recorded."""
        named = {*_dict(self._value, "studies"), *_dict(self._value, "running_bounds_usd")}
        return len(named - self._launches.keys()) + len(_dict(self._value, "reads").keys() - self._batches.keys())

    @property
    def written(self) -> datetime:
        return self._written

    def at(self, at: datetime) -> Then | None:
        if self._written <= at:
            return Then(to_ns(self._written), value=self._value)
        if self.opened > at:
            return None
        last = max((moment for moment in self.readings if moment <= at), default=self.opened)
        value = {key: part for key, part in self._value.items() if key not in _OF_THE_END}
        value |= self._readings_by(at) | self._work_by(at)
        closed = moment_of(value.get("closed_at"))
        if closed is not None and closed > at:
            del value["closed_at"]
        # Of what hosted models had cost by then, only the sum at the end is known.
        value.pop("ai_gateway_estimated_usd", None)
        if isinstance(gateway := value.get("ai_gateway"), dict):
            value["ai_gateway"] = {key: part for key, part in gateway.items() if key != "spent_usd"}
        return Then(to_ns(last), value=value)

    def _find_readings(self) -> list[datetime]:
        if self._is_night:
            found = [moment_of(key) for key in _dict(self._value, "modal_metered_usd")]
        else:
            found = [moment_of(each.get("at")) for each in _list(self._value, "readings") if isinstance(each, dict)]
        return sorted(moment for moment in found if moment is not None)

    def _readings_by(self, at: datetime) -> dict[str, Any]:
        if self._is_night:
            metered = _dict(self._value, "modal_metered_usd")
            return {"modal_metered_usd": {key: usd for key, usd in metered.items()
                                          if key.startswith("baseline") or _is_by(moment_of(key), at)}}  # fmt: skip
        readings = _list(self._value, "readings")
        return {
            "readings": [each for each in readings if isinstance(each, dict) and _is_by(moment_of(each.get("at")), at)]
        }

    def _work_by(self, at: datetime) -> dict[str, Any]:
        work = {"studies": {
            name: {**study, "calls": {}, "status": self._status(name, study, at)}
            for name, study in _dict(self._value, "studies").items()
            if isinstance(study, dict) and _is_by(self._launches.get(name), at)
        }}  # fmt: skip
        if self._is_night:
            running = _dict(self._value, "running_bounds_usd")
            return work | {"running_bounds_usd": {name: usd for name, usd in running.items()
                                                  if _is_by(self._launches.get(name), at)}}  # fmt: skip
        return work | {"reads": {
            name: {**batch, "status": self._status(name, batch, at)}
            for name, batch in _dict(self._value, "reads").items()
            if isinstance(batch, dict) and _is_by(self._batches.get(name), at)
        }}  # fmt: skip

    def _status(self, name: str, work: dict[str, Any], at: datetime) -> str:
        settled = self._units.settled(name, at)
        if settled:
            return str(work.get("status", ""))
        return NOT_RECORDED if settled is None else "running"


def _is_by(moment: datetime | None, at: datetime) -> bool:
    return moment is not None and moment <= at


def _dict(value: dict[str, Any], key: str) -> dict[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def _list(value: dict[str, Any], key: str) -> list[Any]:
    part = value.get(key)
    return part if isinstance(part, list) else []
