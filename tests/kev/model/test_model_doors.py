"""torch comes in only with what computes: never with the package, the encoder or the rules about threads."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "peft", "safetensors"}


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    "module", ["kev", "kev.model", "kev.model.encoding", "kev.model.places", "kev.checkpoint", "kev.threads"]
)
def test_nothing_heavy_comes_with_what_does_not_compute(module: str) -> None:
    assert not loaded_by(module) & HEAVY


def test_the_check_would_see_it() -> None:
    assert "torch" in loaded_by("kev.model.mask")


def test_the_dashboard_loads_neither_the_model_nor_what_it_needs() -> None:
    assert not loaded_by("kevtui.format") & (HEAVY | {"tokenizers", "numpy"})
