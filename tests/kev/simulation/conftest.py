"""The lab of a test: one session with $100, of which $10 are kept back."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "rounds"))  # for the checkout that a spec validates in

from lab import Lab
from round_lab import RoundLab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture(scope="session")
def prepared_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("prepared")
    RoundLab(root)
    return root


@pytest.fixture
def round_lab(prepared_round: Path, tmp_path: Path) -> RoundLab:
    """A registered round of two studies and a blend, with $200."""
    return RoundLab.copy_of(prepared_round, tmp_path / "checkout")
