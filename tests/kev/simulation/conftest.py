"""The lab of a test: one session with $100, of which $10 are kept back."""

from pathlib import Path

import pytest
from lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
