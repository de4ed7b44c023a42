"""One step is torch's: clipped to a norm of one, the head at its own rate, in fp32 whatever the weights are."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from kev.errors import DamagedFile
from kev.train.optimizer import Optimizer
from kev.train.parallel import Parallel
from kev.train.schedule import Rate

RATE = Rate(0.5, 0.9)


class Model(nn.Module):
    """A backbone and a head, as the groups tell them apart by name."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.backbone = nn.Linear(4, 3, dtype=dtype)
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.backbone(x.to(self.backbone.weight.dtype))
        out: torch.Tensor = self.head(hidden.float())
        return out


def optimizer_of(model: Model, *, lr: float = 0.01, head_lr: float = 0.0) -> Optimizer:
    return Optimizer.over(model, lr=lr, head_lr=head_lr, weight_decay=0.1, parallel=Parallel())


def loss_of(model: Model, scale: float = 100.0) -> torch.Tensor:
    return model(torch.arange(8.0).reshape(2, 4)).square().sum() * scale


def test_a_step_moves_what_torch_would_move() -> None:
    ours, theirs = Model(), Model()
    optimizer = optimizer_of(ours, head_lr=0.002)
    plain = torch.optim.AdamW(
        [
            {"params": theirs.backbone.parameters(), "lr": 0.01 * 0.5},
            {"params": theirs.head.parameters(), "lr": 0.002 * 0.5},
        ],
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.1,
    )
    for scale in (100.0, 1e-6, 3.0):
        loss_of(ours, scale).backward()
        step = optimizer.step(RATE)
        loss_of(theirs, scale).backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        plain.step()
        plain.zero_grad()
        assert step.grad_norm == pytest.approx(float(norm), rel=1e-5)
        assert step.clipped == (float(norm) > 1)
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)
            assert mine.grad is None


def test_without_a_head_rate_the_head_moves_at_that_of_the_rest() -> None:
    assert [group.peak for group in optimizer_of(Model()).groups] == [0.01, 0.01]
    assert [group.peak for group in optimizer_of(Model(), head_lr=0.3).groups] == [0.01, 0.3]


def test_masters_keep_steps_that_are_too_small_for_bf16() -> None:
    model = Model(torch.bfloat16)
    optimizer = optimizer_of(model, lr=1e-6)
    before = model.backbone.weight.detach().clone()
    master = next(slot for slot in optimizer.slots() if slot.name == "backbone.weight")
    started = master.value.clone()
    for _ in range(3):
        loss_of(model).backward()
        optimizer.step(Rate(1.0, 0.9))
    assert master.is_master and master.value.dtype == torch.float32
    assert (master.value != started).all()
    assert torch.equal(model.backbone.weight, before)  # what moved is less than a bf16 can tell
    assert torch.equal(model.backbone.weight, master.value.bfloat16())


def test_a_gradient_that_is_no_number_moves_nothing() -> None:
    model = Model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    (loss_of(model) * math.nan).backward()
    assert math.isnan(optimizer_of(model).step(RATE).grad_norm)
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_put_back_goes_on_bit_for_bit(dtype: torch.dtype) -> None:
    model = Model(dtype)
    optimizer = optimizer_of(model)
    loss_of(model).backward()
    optimizer.step(RATE)
    kept = optimizer.state()
    loss_of(model).backward()
    optimizer.step(RATE)
    other = Model(dtype)
    again = optimizer_of(other)
    again.load_state(kept, Path("rank0.pt"))
    loss_of(other).backward()
    again.step(RATE)
    assert all(torch.equal(old, new) for old, new in zip(model.parameters(), other.parameters(), strict=True))


def test_a_state_of_another_model_is_refused() -> None:
    kept = optimizer_of(Model()).state()
    kept["values"][0] = torch.zeros(5, 5)
    with pytest.raises(DamagedFile, match=r"rank0.pt: backbone.weight has shape \(5, 5\), not \(3, 4\)"):
        optimizer_of(Model()).load_state(kept, Path("rank0.pt"))
    kept["names"] = ["another"]
    with pytest.raises(DamagedFile, match="the parameters of another model"):
        optimizer_of(Model()).load_state(kept, Path("rank0.pt"))
