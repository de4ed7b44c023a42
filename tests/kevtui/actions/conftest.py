"""One prepared checkout for every test of the actions; each gets a copy of its own."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

for directory in (Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2] / "kev" / "rounds"):
    sys.path.insert(0, str(directory))

from action_lab import ActionLab, prepare  # noqa: E402  found through the lines above


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("prepared") / "checkout")


@pytest.fixture
def lab(prepared: Path, tmp_path: Path) -> ActionLab:
    """A registered round of two studies, a session with $200, nothing launched."""
    return ActionLab(prepared, tmp_path / "checkout")


@pytest.fixture
def lab_with(prepared: Path, tmp_path: Path) -> Callable[[str], ActionLab]:
    """The same with another authorization."""
    return lambda authorization: ActionLab(prepared, tmp_path / "checkout", authorization)
