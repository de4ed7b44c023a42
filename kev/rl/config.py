"""What a reinforcement is: where it starts, what is rewarded, and how far a step may go."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from kev.errors import Refused
from kev.records.base import Record, reason_of
from kev.spelling import nearest


def _check_group(value: int) -> int:
    if value == 1:
        # Its one answer is its own mean, so nothing would ever be learned from it.
        raise PydanticCustomError("group", "input should be 0, or 2 and more: a group of 1 has nothing to compare with")
    return value


class RlConfig(Record):
    """The settings that the weights depend on, apart from the records."""

    model_config = ConfigDict(strict=True)

    init_from: Annotated[str, Field(min_length=1)]
    """The checkpoint to start from: a directory, or a Hub id that is in the cache. It is the reference too."""
    seed: Annotated[int, Field(ge=0, le=10_000)] = 0
    epochs: Annotated[int, Field(ge=1, le=100)] = 1
    batch: Annotated[int, Field(ge=1, le=256)] = 16
    """Records whose questions are answered before the weights move."""
    updates: Annotated[int, Field(ge=1, le=16)] = 2
    """Optimizer steps on the same answers; from the second on the clip has something to hold."""
    group: Annotated[int, Field(ge=0, le=4096), AfterValidator(_check_group)] = 8
    """Answers drawn for each question; 0 counts every option by its probability and draws nothing."""
    calibration: Annotated[float, Field(ge=0, le=1)] = 1.0
    """0 rewards being right alone; 1 is the quadratic score, whose best policy is the true distribution."""
    normalise: Literal["none", "std"] = "none"
    """`std` divides advantages by their group's deviation, as GRPO does; the reward is then proper no more."""
    clip: Annotated[float, Field(gt=0, lt=1)] = 0.2
    kl_w: Annotated[float, Field(ge=0, le=10)] = 0.05
    """Weight of KL(policy || reference)."""
    entropy_w: Annotated[float, Field(ge=0, le=1)] = 0.0
    lr: Annotated[float, Field(ge=1e-7, le=1e-2)] = 1e-4
    head_lr: Annotated[float, Field(ge=0, le=1e-2)] = 0.0
    """0 means the rate of the rest, `lr`."""
    weight_decay: Annotated[float, Field(ge=0, le=0.3)] = 0.0
    max_state: Annotated[int, Field(ge=1, le=1_048_576)] | None = None
    save_every_steps: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Optimizer steps between resume points, rounded up to whole batches of answers."""


def parse_rl_config(value: RlConfig | Mapping[str, Any]) -> RlConfig:
    """`value`, checked. Raises Refused with the first thing wrong; an unknown key is one."""
    plain = value.to_json() if isinstance(value, RlConfig) else dict(value)
    for key in plain:
        if key not in RlConfig.model_fields:
            raise Refused(f"{key} is no key of a reinforcement{nearest(key, RlConfig.model_fields)}")
    try:
        return RlConfig.model_validate(plain)
    except ValidationError as error:
        raise Refused(f"the reinforcement cannot be run: {reason_of(error)}") from None
