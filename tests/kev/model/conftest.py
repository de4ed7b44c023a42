"""Small bases, made once for all tests of the model, and records to ask of."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

pytest.importorskip("transformers", reason="the train extra is not installed")
pytest.importorskip("peft", reason="the train extra is not installed")

from kev.model.decision_model import DecisionModel
from kev.model.encoding import Encoder
from kev.model.loading import new_model
from kev.model.settings import Settings
from kev.model.tiny_base import make_tiny_base
from kev.threads import use_cores

use_cores(1)


@pytest.fixture(scope="session")
def attention_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_base(tmp_path_factory.mktemp("bases") / "attention", hidden=64, layers=2)


@pytest.fixture(scope="session")
def hybrid_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_base(tmp_path_factory.mktemp("bases") / "hybrid", kind="hybrid", hidden=64, layers=2)


@pytest.fixture(scope="session")
def encoder(attention_base: Path) -> Encoder:
    return Encoder.from_directory(attention_base)


@pytest.fixture(scope="session")
def attention_model(attention_base: Path) -> DecisionModel:
    """A model that no test may change."""
    return new_model(str(attention_base), Settings(lora=0, head_dim=128)).eval()


@pytest.fixture(scope="session")
def hybrid_model(hybrid_base: Path) -> DecisionModel:
    """A recurrent one that no test may change."""
    return new_model(str(hybrid_base), Settings(lora=0, head_dim=128)).eval()
