"""A registered round in a checkout of its own."""

import sys
from pathlib import Path

import pytest

for name in ("rounds", "simulation"):
    sys.path.append(str(Path(__file__).parent.parent / name))

from round_lab import RoundLab  # noqa: E402  (its directory is on the path only now)


@pytest.fixture(scope="session")
def prepared_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("prepared")
    RoundLab(root)
    return root


@pytest.fixture
def round_lab(prepared_round: Path, tmp_path: Path) -> RoundLab:
    """A registered round of two studies and a blend."""
    return RoundLab.copy_of(prepared_round, tmp_path / "checkout")
