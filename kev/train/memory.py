"""How much memory a run will need at its peak, estimated before it starts.

What is kept for every parameter is added up. What a pass needs is measured on a few small passes of the model itself
and extrapolated: memory grows with the sequences, and within one with its length and, where scores of every pair of
tokens are kept, with its square. So no architecture, kernel or checkpointing needs a formula of its own.

What is counted is tensors, as torch counts them on a GPU. On a CPU the process was seen to grow by up to 1.6 times as
much: the C library keeps freed memory in pieces that are too small for the next tensor.
"""

import resource
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kev.train.optimizer import Optimizer

PROBE_LENGTHS = (32, 96)
MANY = 2
"""Sequences of the probes; a constant cost is told from a cost a sequence by one probe of a single sequence."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes, by what they are for."""

    weights: int
    gradients: int
    """In the type of the parameters, as a pass leaves them."""
    moments: int
    masters: int
    """fp32 copies of weights that are kept in fewer bits."""
    largest_pass: int | None
    """Beyond the above; None where it could not be measured."""
    step_gradients: int = 0
    """In fp32, as the optimizer takes them: in place of `gradients`, and when no pass is under way."""

    @property
    def optimizer(self) -> int:
        """What the optimizer keeps from step to step."""
        return self.masters + self.moments

    @property
    def loaded(self) -> int:
        """What is there before the first step."""
        return self.weights + self.masters

    @property
    def total(self) -> int:
        """The most at one time: in the largest pass, or in the optimizer's step where that needs more."""
        return self.weights + self.optimizer + max(self.gradients + (self.largest_pass or 0), self.step_gradients)

    def describe(self) -> str:
        """The estimate in words, for the log."""
        if self.largest_pass is None:
            return f"{_mib(self.total)}, without its passes (they are not estimated where weights are split),"
        kept = f"{_mib(self.total)} (weights {_mib(self.weights)}, optimizer {_mib(self.optimizer)}"
        if self.step_gradients > self.gradients + self.largest_pass:
            return f"{kept}, gradients in fp32 {_mib(self.step_gradients)})"
        return f"{kept}, gradients {_mib(self.gradients)}, largest pass {_mib(self.largest_pass)})"


def estimate_memory(
    model: nn.Module, optimizer: Optimizer, run_pass: Callable[[int, int], None], *, sequences: int, length: int
) -> MemoryEstimate:
    """The peak of training whose largest pass has `sequences` sequences of `length` tokens.

    `run_pass(sequences, length)` runs one such pass forward and backward. Gradients are left where they were: none.
    """
    static = static_memory(model, optimizer)
    samples = []
    lengths = sorted({min(length, probe) for probe in PROBE_LENGTHS})
    run_pass(1, lengths[0])  # gradients are there from here on, as they are in all passes of a step but the first
    for count, probe in [(1, lengths[-1]), *((MANY, probe) for probe in lengths)]:
        with PeakBytes() as peak:
            run_pass(count, probe)
        samples.append((count, probe, peak.peak))
    for slot in optimizer.slots():
        slot.forget_gradient()
    needed = max(_extrapolate(samples, sequences, length), 0)
    return replace(static, largest_pass=needed)


def static_memory(model: nn.Module, optimizer: Optimizer) -> MemoryEstimate:
    """What is kept for the parameters of this rank, whatever passes through them."""
    seen: dict[int, int] = {}
    for tensor in [*model.parameters(), *model.buffers()]:
        own = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        seen[own.untyped_storage().data_ptr()] = own.untyped_storage().nbytes()
    slots = list(optimizer.slots())
    gradients = sum(slot.value.numel() * slot.parameter.element_size() for slot in slots)
    masters = sum(slot.value.nbytes for slot in slots if slot.is_master)
    values = sum(slot.value.nbytes for slot in slots)
    return MemoryEstimate(sum(seen.values()), gradients, 2 * values, masters, None, step_gradients=values)


def _extrapolate(samples: Sequence[tuple[int, int, int]], sequences: int, length: int) -> int:
    def terms(count: int, tokens: int) -> list[float]:
        return [1.0, count * tokens, count * tokens * tokens]

    known = np.array([terms(count, tokens) for count, tokens, _ in samples])
    peaks = np.array([float(peak) for *_, peak in samples])
    scale = known.max(axis=0)
    solution, *_ = np.linalg.lstsq(known / scale, peaks, rcond=None)
    return int(np.array(terms(sequences, length)) / scale @ solution)


class PeakBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of tensors that come to life inside it, on any device, and remembers the most at one time."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.device.type != "meta":
                self._meet(leaf.untyped_storage(), before)
        return result

    def _meet(self, storage: torch.UntypedStorage, before: set[int]) -> None:
        key = storage._cdata
        if key in self._known or key in before:
            return
        self._known.add(key)
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._lose, key, size)

    def _lose(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


def peak_device_bytes(device: torch.device) -> int:
    """The most that torch's tensors took of a GPU so far; 0 on a CPU, where nobody counts."""
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else 0


def peak_rss_bytes() -> int:
    """The most that this process held so far, libraries and all."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
