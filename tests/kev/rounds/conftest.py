"""One good checkout for every test that only changes the spec: written once, since nothing of it is changed."""

from pathlib import Path

import pytest
from checkouts import Check, write_checkout, write_spec

from kev.rounds.validate import validate


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a checkout in which the good spec validates."""
    root = tmp_path_factory.mktemp("checkout")
    write_checkout(root)
    return root


@pytest.fixture
def check(checkout: Path, tmp_path: Path) -> Check:
    """Validates a spec, given as JSON, in the good checkout."""
    return lambda spec: validate(write_spec(tmp_path / "r201.json", spec), checkout)
