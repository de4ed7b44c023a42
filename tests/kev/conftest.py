"""Settings of all tests of the engine."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# A registered round is built from a checkout in which a spec validates, and stands beside the simulated provider.
for _directory in ("rounds", "simulation"):
    sys.path.append(str(Path(__file__).parent / _directory))

if TYPE_CHECKING:
    from round_lab import RoundLab

# Trainings of tests are small, and several test processes may run on one machine.
os.environ.setdefault("KEV_TRAINING_LOCK", f"{tempfile.mkdtemp(prefix='kev-tests-')}/training.lock")


@pytest.fixture(scope="session")
def prepared_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout that each `round_lab` is a copy of."""
    from round_lab import RoundLab

    root = tmp_path_factory.mktemp("prepared")
    RoundLab(root)
    return root


@pytest.fixture
def round_lab(prepared_round: Path, tmp_path: Path) -> "RoundLab":
    """A registered round of two studies and a blend, a session with $200, and a provider that lives in the test."""
    from round_lab import RoundLab

    return RoundLab.copy_of(prepared_round, tmp_path / "checkout")
