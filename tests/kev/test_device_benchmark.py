"""The device benchmark runs in little on any machine, and a machine without a GPU is no failure."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from file_module import load_module

torch = pytest.importorskip("torch")
pytest.importorskip("peft", reason="the train extra is not installed")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_module(ROOT / "benchmarks" / "device.py")


def test_in_little_every_check_runs_and_passes(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--tiny", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "device.json").read_text())
    assert found["isolation"]["passed"] and found["isolation"]["tolerance"] == 0.03
    assert found["identity"] == {"resumed_from": 6, "different_tensors": 0, "passed": True}
    assert found["step_rate"]["steps_per_second"] > 0
    printed = capsys.readouterr().out
    assert "| a continuation's bits | passed, 0 tensors differ |" in printed


def test_without_a_gpu_it_says_so_and_succeeds(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert script.main(["--out", str(tmp_path)]) == 0
    assert "no GPU that torch can use" in capsys.readouterr().out
    assert not (tmp_path / "device.json").exists()


def test_operations_are_counted_for_every_matrix_and_for_attention(script: ModuleType, tmp_path: Path) -> None:
    from kev.model.loading import new_model
    from kev.model.settings import Settings
    from kev.model.tiny_base import make_tiny_base

    base = make_tiny_base(tmp_path / "base", hidden=64, layers=2)
    model = new_model(str(base), Settings(lora=0))
    # Two heads of 32, one of them for keys and values; a feed-forward of twice the width.
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
    assert script.matrix_weights(model.backbone) == 2 * layer
    assert script.token_operations(model, 100) == 6 * 2 * layer + 12 * 2 * 64 * 100


def test_a_device_is_known_by_its_longest_fitting_name(script: ModuleType) -> None:
    assert script.peak_of("NVIDIA H200") == script.peak_of("NVIDIA H100 80GB HBM3") == 989e12
    assert script.peak_of("NVIDIA H100 PCIe") == 756e12
    assert script.peak_of("NVIDIA L40S") == 362e12
    assert script.peak_of("cpu") is None
