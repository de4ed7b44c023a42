"""A tiny base and a few records, made once: training here is real, and small."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

pytest.importorskip("transformers", reason="the train extra is not installed")
pytest.importorskip("peft", reason="the train extra is not installed")

from kev.model.tiny_base import make_tiny_base
from kev.suite import open_suite
from kev.threads import use_cores

use_cores(1)

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base of less than a megabyte with ordinary attention."""
    return make_tiny_base(tmp_path_factory.mktemp("base"), hidden=32, layers=2, vocabulary=512)


@pytest.fixture(scope="session")
def hybrid_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base that reads every question as a row of its own."""
    return make_tiny_base(tmp_path_factory.mktemp("hybrid"), kind="hybrid", hidden=32, layers=2, vocabulary=512)


@pytest.fixture(scope="session")
def records() -> list[dict[str, Any]]:
    """Forty records of all three question types."""
    partition = open_suite(REPOSITORY / "evals" / "decision-v1").read_partition("train")
    return random.Random(0).sample(partition, 40)


@pytest.fixture
def config(base: Path) -> dict[str, Any]:
    """A LoRA run of ten steps."""
    return {"base": str(base), "lora": 4, "head_dim": 128, "batch": 4, "accum": 1, "lr": 1e-3}


@pytest.fixture
def full_config(base: Path) -> dict[str, Any]:
    """The same with the whole model trained."""
    shape = {"head_dim": 128, "batch": 4, "accum": 1, "lr": 1e-3}
    return {"base": str(base), "full_ft": 1, "weights_dtype": "bf16", **shape}
