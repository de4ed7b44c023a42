"""The lab of a test: one session with $100, of which $10 are kept back."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "rounds"))  # for the checkout that a spec validates in

from lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
