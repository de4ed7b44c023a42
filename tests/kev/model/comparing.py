"""Two models, or two directories, held against each other."""

from pathlib import Path

import torch
from asking import LEVEL, STATE, TEAM, URGENT
from torch import Tensor

from kev.model.decision_model import DecisionModel


def answers(model: DecisionModel) -> list[Tensor]:
    encoding = model.encoder.encode(STATE, [TEAM, URGENT, LEVEL])
    return model.score([encoding])[0]


def disturbed(model: DecisionModel) -> DecisionModel:
    """Every trained weight moved, so that a fresh adapter is no longer the same as none."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def equal(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def close(left: list[Tensor], right: list[Tensor], tolerance: float = 1e-5) -> bool:
    return all(torch.allclose(a, b, atol=tolerance) for a, b in zip(left, right, strict=True))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
