"""Memory is counted as tensors live and die, and estimated for passes larger than any that was tried."""

from typing import Any

import pytest
import torch

from kev.train.examples import examples_of
from kev.train.memory import MemoryEstimate, PeakBytes, _extrapolate, static_memory
from kev.train.parallel import Parallel
from kev.train.passes import run_pass
from kev.train.settings import parse_config
from kev.train.setup import set_up

FLOAT = 4


def test_the_peak_counts_what_lives_at_one_time() -> None:
    with PeakBytes() as peak:
        first = torch.ones(1000)
        second = first + 1
        del first
        third = second * 2
        view = third.view(10, 100)
    assert peak.peak == 2 * 1000 * FLOAT
    assert peak.live == 2 * 1000 * FLOAT
    del second, third, view
    assert peak.live == 0


def test_what_was_there_before_is_not_counted_again() -> None:
    before = torch.ones(1000)
    with PeakBytes() as peak:
        before.add_(1)
        before.view(-1)
    assert peak.peak == 0


def test_what_is_kept_for_a_backward_pass_is_counted() -> None:
    weight = torch.ones(1000, requires_grad=True)
    with PeakBytes() as peak:
        kept = (weight.exp() * 2).exp()
        assert peak.live == 2 * 1000 * FLOAT  # the results of both exp, not the product between them
        kept.sum().backward()
    assert peak.peak >= 3 * 1000 * FLOAT


def test_growth_by_sequences_and_by_the_square_of_the_length_is_told_apart() -> None:
    def peak(count: int, length: int) -> int:
        return 5_000 + count * (300 * length + 7 * length * length)

    samples = [(count, length, peak(count, length)) for count, length in ((1, 128), (2, 32), (2, 64), (2, 128))]
    assert _extrapolate(samples, 16, 900) == pytest.approx(peak(16, 900), rel=1e-6)


@pytest.mark.parametrize("checkpointing", [0, 1])
def test_the_largest_pass_is_foreseen_within_fifteen_percent(
    config: dict[str, Any], records: list[dict[str, Any]], checkpointing: int
) -> None:
    trial = parse_config({**config, "checkpointing": checkpointing, "max_state": 2000})
    run = set_up(trial, examples_of(records), Parallel(), 1, {})
    sequences, length = 4, 400
    estimate = run.estimate(sequences, length)

    def passes() -> None:
        fed = run.feed.probe(sequences, length)
        run_pass(run.model, fed, run.weights, step_records=1, bf16=False)

    passes()
    with PeakBytes() as peak:
        passes()
    assert estimate.largest_pass == pytest.approx(peak.peak, rel=0.15)


def test_an_estimate_says_what_is_for_what() -> None:
    mib = 2**20
    words = MemoryEstimate(10 * mib, 2 * mib, 3 * mib, mib, 100 * mib, 4 * mib).describe()
    assert words == "116 MiB (weights 10 MiB, optimizer 4 MiB, gradients 2 MiB, largest pass 100 MiB)"
    words = MemoryEstimate(10 * mib, 20 * mib, 3 * mib, mib, 5 * mib, 40 * mib).describe()
    assert words == "54 MiB (weights 10 MiB, optimizer 4 MiB, gradients in fp32 40 MiB)"
    assert "without its passes" in MemoryEstimate(mib, 0, 0, 0, None).describe()


def test_what_rounded_weights_need_beside_them_is_counted_once(
    full_config: dict[str, Any], records: list[dict[str, Any]]
) -> None:
    run = set_up(parse_config(full_config), examples_of(records), Parallel(), 1, {})
    backbone = sum(parameter.numel() for parameter in run.model.backbone.parameters())
    head = sum(parameter.numel() for parameter in run.model.head.parameters())
    found = static_memory(run.model, run.optimizer)
    # Masters and two moments of 4 bytes for each rounded weight; the head is fp32 and has no master.
    assert found.optimizer == 12 * backbone + 8 * head
    assert found.masters == 4 * backbone
    assert found.gradients == 2 * backbone + 4 * head
    assert found.step_gradients == 4 * (backbone + head)
