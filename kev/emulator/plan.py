"""The fault plan: what shall go wrong, and how the platform is configured. Written in TOML; see docs/emulator.md."""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kev import files
from kev.errors import DamagedFile
from kev.records.base import reason_of

ENDLESS = -1

Kind = Literal["unavailable", "throttle", "refuse", "lost-reply", "hang", "slow", "ok"]
"""What a fault does to a request.

- `unavailable`: UNAVAILABLE, before the request was seen.
- `throttle`: RESOURCE_EXHAUSTED with `retry_after_s`.
- `refuse`: RESOURCE_EXHAUSTED without it, as for a limit that waiting does not lift.
- `lost-reply`: done, and then UNAVAILABLE.
- `hang`: no answer for `delay_s`, or until the caller gives up.
- `slow`: answered after `delay_s`; of a stream, each message.
- `ok`: nothing, to count a request in a sequence.
"""


Event = Literal["preempt", "crash", "oom", "stop", "timeout", "slow"]
"""What can happen to a container: SIGINT and a new container; a sudden end; the same for lack of memory; SIGTERM; the
time-out of what it works on, early; a machine that is a fiftieth as fast from then on."""


class _Part(BaseModel):
    # A misspelt key in a plan would quietly inject nothing, and the test built on it would prove nothing.
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fault(_Part):
    """Requests of `rpc` (names, patterns or groups) meet `kind`: the first `skip` are spared, then `times` are hit."""

    name: str = ""
    rpc: tuple[str, ...] = ()
    kind: Kind
    times: int = 1
    skip: int = Field(default=0, ge=0)
    message: str = "injected by the fault plan"
    retry_after_s: float | None = Field(default=None, gt=0)
    delay_s: float | None = Field(default=None, ge=0)
    containers: bool = False
    """Whether requests of containers are hit as well as those of clients."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind == "throttle" and self.retry_after_s is None:
            raise ValueError("throttle needs retry_after_s; without a hint it is kind refuse")
        if self.kind == "slow" and self.delay_s is None:
            raise ValueError("slow needs delay_s")
        return self


class Sequence(_Part):
    """Requests of `rpc` meet the named faults in this order, one each; after the last nothing happens."""

    rpc: tuple[str, ...]
    steps: tuple[str, ...]


class ContainerEvent(_Part):
    """A container of `function` meets `event`, `after_s` after its call began or when it prints `at_log`."""

    function: str = "*"
    event: Event
    after_s: float | None = Field(default=None, ge=0)
    at_log: str | None = None
    times: int = 1

    @model_validator(mode="after")
    def _check_moment(self) -> Self:
        if (self.after_s is None) == (self.at_log is None):
            raise ValueError("write exactly one of after_s and at_log")
        return self


class ClockPlan(_Part):
    container_skew_s: float = 0
    """Added to the wall clock that Python code in containers reads."""


class VolumePlan(_Part):
    stale_s: float = Field(default=0, ge=0)
    """How long a commit stays invisible to everyone else."""


class LogPlan(_Part):
    lag_s: float = Field(default=0, ge=0)
    retention_s: float = Field(default=30 * 86400, gt=0)


class LimitPlan(_Part):
    """Requests per minute of a kind, and cards in use at once; None is no limit."""

    app_creations_per_minute: int | None = Field(default=None, ge=0)
    listings_per_minute: int | None = Field(default=None, ge=0)
    gpus: int | None = Field(default=None, ge=0)


class MoneyPlan(_Part):
    """At `spend_cap_usd` of simulated spend new calls are refused; with `stop`, running containers are ended too."""

    spend_cap_usd: Decimal | None = Field(default=None, ge=0)
    at_cap: Literal["refuse", "stop"] = "refuse"


class ResultPlan(_Part):
    retention_s: float = Field(default=7 * 86400, gt=0)
    """How long after its end the result of a call can be fetched."""


class FaultPlan(_Part):
    """A whole plan; the empty one injects nothing and limits nothing."""

    fault: tuple[Fault, ...] = ()
    sequence: tuple[Sequence, ...] = ()
    container: tuple[ContainerEvent, ...] = ()
    clock: ClockPlan = ClockPlan()
    volumes: VolumePlan = VolumePlan()
    logs: LogPlan = LogPlan()
    limits: LimitPlan = LimitPlan()
    money: MoneyPlan = MoneyPlan()
    results: ResultPlan = ResultPlan()

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        named = {fault.name for fault in self.fault if fault.name} | {"ok"}
        for sequence in self.sequence:
            if unknown := [step for step in sequence.steps if step not in named]:
                raise ValueError(f"sequence step {unknown[0]!r} is no fault of this plan; known are {sorted(named)}")
        if idle := [fault for fault in self.fault if not fault.rpc and not fault.name]:
            raise ValueError(f"a fault of kind {idle[0].kind} has neither rpc nor name, so nothing can meet it")
        return self


def read_plan(path: Path) -> FaultPlan:
    """The plan in `path`. Raises NotFound, or DamagedFile naming the key that is wrong."""
    data = files.read_bytes(path, limit=1024 * 1024)
    try:
        return parse_plan(tomllib.loads(data.decode()))
    except UnicodeDecodeError:
        raise DamagedFile(path, "not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise DamagedFile(path, f"not TOML: {error}") from None
    except ValidationError as error:
        raise DamagedFile(path, reason_of(error)) from None


def parse_plan(value: dict[str, Any]) -> FaultPlan:
    """`value`, as read from TOML, as a plan. Raises ValidationError."""
    return FaultPlan.model_validate(value)
