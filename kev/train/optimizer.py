"""AdamW over fp32 values: two groups, the global clip, and masters for weights that are kept in fewer bits.

Every trained parameter has a *slot*: the fp32 tensor that AdamW moves. For an fp32 parameter it is the parameter's own
memory, for a bf16 one a copy that is rounded back after each step, and for a sharded one this rank's shard. AdamW
and the resume points therefore see plain tensors, whatever the model is made of.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from kev.errors import DamagedFile
from kev.train.parallel import Parallel, local
from kev.train.schedule import Rate

MAX_GRAD_NORM = 1.0
BETA2 = 0.999
EPSILON = 1e-8


@dataclass(slots=True)
class Slot:
    """A trained parameter and the fp32 tensor that stands for it."""

    name: str
    parameter: nn.Parameter
    value: Tensor
    sharded: bool

    @property
    def is_master(self) -> bool:
        """Whether the value is a copy beside the parameter rather than the parameter's own memory."""
        return self.value.data_ptr() != local(self.parameter).data_ptr()

    def take_gradient(self) -> None:
        """Move the parameter's gradient to the value, in fp32."""
        gradient = self.parameter.grad
        self.value.grad = None if gradient is None else local(gradient).detach().to(self.value.dtype)
        if self.is_master:
            self.parameter.grad = None

    def publish(self) -> None:
        """Round the value into the parameter, where they are two."""
        if self.is_master:
            local(self.parameter).detach().copy_(self.value)

    def forget_gradient(self) -> None:
        self.parameter.grad = None
        self.value.grad = None


@dataclass(slots=True)
class Step:
    """What one optimizer step did. `grad_norm` is that before clipping, over all ranks."""

    grad_norm: float
    clipped: bool


@dataclass(slots=True)
class Group:
    """Slots with a peak rate of their own."""

    slots: list[Slot]
    peak: float
    weight_decay: float


@dataclass(slots=True)
class Optimizer:
    """AdamW over the trained parameters of a model."""

    groups: list[Group]
    parallel: Parallel
    adamw: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        self.adamw = torch.optim.AdamW(
            [
                {"params": [slot.value for slot in group.slots], "lr": group.peak, "weight_decay": group.weight_decay}
                for group in self.groups
            ],
            eps=EPSILON,
            fused=True,  # one pass over the memory, and no temporary copies of it
        )

    @classmethod
    def over(
        cls, model: nn.Module, *, lr: float, head_lr: float, weight_decay: float, parallel: Parallel
    ) -> "Optimizer":
        """The groups of a decision model: the backbone at `lr`, the head at `head_lr`, or `lr` where that is 0."""
        backbone: list[Slot] = []
        head: list[Slot] = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                (head if name.startswith("head.") else backbone).append(_slot(name, parameter))
        groups = [Group(backbone, lr, weight_decay), Group(head, head_lr or lr, weight_decay)]
        return cls([group for group in groups if group.slots], parallel)

    def slots(self) -> Iterator[Slot]:
        """Every slot, in the order of the model's parameters within the groups."""
        for group in self.groups:
            yield from group.slots

    @property
    def trained_parameters(self) -> int:
        """Trained numbers in the whole model."""
        return sum(slot.parameter.numel() for slot in self.slots())

    def step(self, rate: Rate) -> Step:
        """Clip the gradients to a global norm of 1 and move every value; gradients are gone afterwards.

        A norm that is not finite moves nothing, and is the caller's to stop at.
        """
        self.parallel.sum_gradients([slot.parameter for slot in self.slots() if not slot.sharded])
        for slot in self.slots():
            slot.take_gradient()
        norm = self._norm()
        clipped = norm > MAX_GRAD_NORM
        if math.isfinite(norm):
            if clipped:
                gradients = [slot.value.grad for slot in self.slots() if slot.value.grad is not None]
                torch._foreach_mul_(gradients, MAX_GRAD_NORM / (norm + 1e-6))
            for group, settings in zip(self.groups, self.adamw.param_groups, strict=True):
                settings["lr"] = group.peak * rate.share
                settings["betas"] = (rate.beta1, BETA2)
            self.adamw.step()
            for slot in self.slots():
                slot.publish()
        for slot in self.slots():
            slot.forget_gradient()
        return Step(norm, clipped)

    def _norm(self) -> float:
        shards: list[Tensor] = []
        whole: list[Tensor] = []
        for slot in self.slots():
            if slot.value.grad is not None:
                (shards if slot.sharded else whole).append(slot.value.grad)
        squares = _squares(shards)
        if self.parallel.world > 1:
            squares = self.parallel.sum(squares)
        return math.sqrt(squares + _squares(whole))

    def state(self) -> dict[str, Any]:
        """Copies on the host of the values and moments of this rank, which training may go on from elsewhere."""
        return {
            "names": [slot.name for slot in self.slots()],
            "values": [_host(slot.value) for slot in self.slots()],
            "moments": [
                {key: _host(tensor) for key, tensor in self.adamw.state[slot.value].items()} for slot in self.slots()
            ],
        }

    def load_state(self, state: dict[str, Any], where: Any) -> None:
        """Take over what `state` returned. Raises DamagedFile, naming `where`, for that of another model."""
        slots = list(self.slots())
        if state.get("names") != [slot.name for slot in slots]:
            raise DamagedFile(where, "holds the parameters of another model")
        for slot, value, moments in zip(slots, state["values"], state["moments"], strict=True):
            if value.shape != slot.value.shape:
                raise DamagedFile(where, f"{slot.name} has shape {tuple(value.shape)}, not {tuple(slot.value.shape)}")
            slot.value.data.copy_(value)
            slot.publish()
            self.adamw.state[slot.value] = {
                key: tensor.to(slot.value.device) if key != "step" else tensor.clone()
                for key, tensor in moments.items()
            }


def _slot(name: str, parameter: nn.Parameter) -> Slot:
    own = local(parameter).detach()
    value = own if own.dtype == torch.float32 else own.float()
    return Slot(name, parameter, value, sharded=own.data_ptr() != parameter.data_ptr() or _is_sharded(parameter))


def _is_sharded(parameter: Tensor) -> bool:
    return hasattr(parameter, "to_local")


def _squares(gradients: list[Tensor]) -> float:
    if not gradients:
        return 0.0
    norms = torch.stack(torch._foreach_norm(gradients)).double()
    return float(norms.square().sum())


def _host(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True)
