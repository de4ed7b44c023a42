"""Several ranks as one trainer: who is here, sums over all of them, and whole weights split among them.

A LoRA run keeps the model on every rank and sums the gradients of what is trained. A full-weight run splits every
decoder layer's weights with FSDP2: fp32 shards are the masters, bf16 is gathered for each pass, gradients are reduced
in fp32. Gradients are summed and never averaged, since the loss is already divided by the records of all ranks.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from kev.errors import KevError, UsageError
from kev.train.launch import MEETING

TIMEOUT = timedelta(minutes=60)
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Parallel:
    """This process among `world`. With one rank every sum is the identity."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU

    @property
    def leads(self) -> bool:
        """Whether this rank writes what there is one of."""
        return self.rank == 0

    def sum(self, value: float) -> float:
        """The sum of `value` over all ranks, in double precision."""
        if self.world == 1:
            return value
        total = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return float(total)

    def sum_each(self, values: Sequence[float]) -> list[float]:
        """The sums of several values over all ranks, in one exchange."""
        if self.world == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return [float(value) for value in total]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients of whole parameters by their sums over all ranks, in one exchange."""
        if self.world == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                # A rank whose records touch no such parameter takes part all the same.
                parameter.grad = torch.zeros_like(parameter)
        gradients = [cast(Tensor, parameter.grad) for parameter in parameters]
        flat = torch.cat([gradient.float().flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, summed in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
            gradient.copy_(summed.view_as(gradient))

    def wait(self) -> None:
        """Until every rank is here."""
        if self.world > 1:
            dist.barrier()

    def together(self, work: Callable[[], Any], what: str) -> Any:
        """The result of `work`; if it fails on any rank, every rank raises, so that none waits for the others."""
        error: Exception | None = None
        result = None
        try:
            result = work()
        except Exception as raised:  # whatever it is, the others must hear of it first
            error = raised
        failed = self.sum(0.0 if error is None else 1.0)
        if error is not None:
            raise error
        if failed:
            raise KevError(f"{what}: failed on {failed:.0f} of {self.world} ranks; see the logs of the others")
        return result


def join(device: torch.device) -> Parallel:
    """Meet the other ranks that the environment names, as torchrun or `kev.train.launch` set it; alone where it names
    none."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Parallel(device=device)
    if not dist.is_initialized():
        if "RANK" not in os.environ:
            raise UsageError("WORLD_SIZE is set and RANK is not; start several ranks with torchrun")
        backend = "nccl" if device.type == "cuda" else "gloo"
        meeting = os.environ.get(MEETING)
        if meeting is None:
            dist.init_process_group(backend, timeout=TIMEOUT)
        else:
            dist.init_process_group(
                backend, f"file://{meeting}", rank=int(os.environ["RANK"]), world_size=world, timeout=TIMEOUT
            )
    return Parallel(dist.get_rank(), world, device)


def leave(parallel: Parallel) -> None:
    """Part from the other ranks."""
    if parallel.world > 1 and dist.is_initialized():
        dist.destroy_process_group()


def shard(backbone: nn.Module, parallel: Parallel) -> None:
    """Split the weights of `backbone` among the ranks, a decoder layer at a time."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(parallel.device.type, (parallel.world,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    # What is rounded to bf16 is what is gathered; the shards are the fp32 masters.
    backbone.float()
    for module in [*decoder_layers(backbone), backbone]:
        sharded = fully_shard(module, mesh=mesh, mp_policy=policy)
        # Sums by name: a factor of 1 alone asks for a kind of sum that gloo does not have.
        sharded.set_gradient_divide_factor(1.0)
        sharded.set_force_sum_reduction_for_comms(True)


def decoder_layers(backbone: nn.Module) -> list[nn.Module]:
    """The decoder layers of a backbone: the members of its longest list of modules."""
    lists = [list(module) for module in backbone.modules() if isinstance(module, nn.ModuleList)]
    return max(lists, key=len, default=[])


def local(tensor: Tensor) -> Tensor:
    """What this rank holds of `tensor`: its shard, or all of it."""
    return cast(Tensor, tensor.to_local()) if hasattr(tensor, "to_local") else tensor


def whole(tensor: Tensor) -> Tensor:
    """`tensor` put together from all ranks' shards, on every rank."""
    return cast(Tensor, tensor.full_tensor()) if hasattr(tensor, "full_tensor") else tensor
