"""Checkpoints between two others, made and copied in a container."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="weights are what is mixed here")

import torch
from safetensors.torch import load_file

from kev.checkpoint import read_head
from kev.errors import NotFound, Refused
from kev.model.loading import load_checkpoint, new_model
from kev.model.saving import save_checkpoint
from kev.model.settings import Settings
from kev.model.tiny_base import make_tiny_base
from kev.worker.blends import run_interpolation
from kev.worker.mirrors import run_mirror
from kev.worker.orders import BlendOrder, MirrorOrder
from kev.worker.trials import run_trial

from .conftest import Bench, DirectoryVolume

WEIGHTS = "model.safetensors"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_tiny_base(tmp_path / "base", hidden=32, layers=1, vocabulary=400)


def put_checkpoint(bench: Bench, base: Path, name: str, shift: float, lora: int = 0) -> str:
    """A complete trial whose weights are the base's, moved by `shift`."""
    model = new_model(str(base), Settings(lora=lora, lora_targets="all"), seed=int(shift * 10))
    with torch.no_grad():
        for parameter in model.backbone.parameters():
            if parameter.requires_grad:
                parameter += shift
    place = bench.runs.path / name / "checkpoint"
    save_checkpoint(place, model, extra={"args": {"seed": 1}, "temperature_fit": {"n": 3}})
    (place / "training_metrics.json").write_text("{}")
    return f"/runs/{name}/checkpoint"


def blend(bench: Bench, base: Path, sft: str, **changes: Any) -> BlendOrder:
    values: dict[str, Any] = {
        "run_id": "blend", "sources": bench.order().sources, "sft": sft, "base": str(base), "revision": "0" * 40,
        "alphas": ["0.85", "0.50"], "prefix": "tiny", "study": "wise",
    }  # fmt: skip
    return BlendOrder(**(values | changes))


def weights(place: Path) -> dict[str, Any]:
    return dict(load_file(place / WEIGHTS))


def test_a_checkpoint_is_drawn_toward_its_base_by_each_share(bench: Bench, base: Path) -> None:
    sft = put_checkpoint(bench, base, "night/00-trial-0", 0.4)
    done = run_interpolation(blend(bench, base, sft), bench.container, bench.lines.append)
    assert done == {"study": "wise", "name": "tiny", "made": ["tiny-w85", "tiny-w50"]}
    before, after = weights(base), weights(bench.runs.path / "night/00-trial-0/checkpoint")
    for name, alpha in (("tiny-w85", 0.85), ("tiny-w50", 0.5)):
        made = bench.runs.committed / "wise" / name
        for key, tensor in weights(made / "checkpoint").items():
            torch.testing.assert_close(tensor, before[key] + alpha * (after[key] - before[key]))
        record = json.loads((made / "interpolation.json").read_text())
        assert (record["alpha"], record["sft"], record["toward"]) == (alpha, sft, str(base))
        head = read_head(made / "checkpoint")
        assert head.temperature == 1.0 and head.get("temperature_fit") is None and head.get("args") == {"seed": 1}
        load_checkpoint(made / "checkpoint")
        sums = json.loads((made / "manifest.json").read_text())["files"]
        assert {f"checkpoint/{WEIGHTS}", "checkpoint/head.pt", "interpolation.json"} <= sums.keys()
    with pytest.raises(Refused, match="is there already"):
        run_interpolation(blend(bench, base, sft), bench.container, bench.lines.append)


@pytest.mark.parametrize("lora", [0, 2])
def test_two_checkpoints_are_mixed_their_heads_only_if_asked(bench: Bench, base: Path, lora: int) -> None:
    sft, other = put_checkpoint(bench, base, "night/a", 0.4), put_checkpoint(bench, base, "night/b", 0.2, lora)
    heads = [read_head(bench.runs.path / f"night/{each}/checkpoint").get("head") for each in "ab"]
    merged = dict(load_checkpoint(bench.runs.path / "night/b/checkpoint", merge=True).backbone.state_dict())
    for prefix, blend_head in (("own", False), ("mixed", True)):
        order = blend(bench, base, sft, toward=other, alphas=["0.25"], prefix=prefix, blend_head=blend_head)
        run_interpolation(order, bench.container, bench.lines.append)
        made = bench.runs.committed / f"wise/{prefix}-w25/checkpoint"
        own = weights(bench.runs.path / "night/a/checkpoint")
        for key, tensor in weights(made).items():
            torch.testing.assert_close(tensor, torch.lerp(merged[key], own[key], 0.25))
        head = read_head(made).get("head")
        wanted = {key: torch.lerp(heads[1][key], heads[0][key], 0.25) if blend_head else heads[0][key] for key in head}
        torch.testing.assert_close(head, wanted)


def test_files_left_over_beside_what_is_mixed_are_named(bench: Bench, base: Path) -> None:
    sft = put_checkpoint(bench, base, "night/a", 0.4)
    left_over = bench.container.place(sft) / "adapter_config.json"
    left_over.write_text('{"peft_type": "LORA"}')
    run_interpolation(blend(bench, base, sft), bench.container, bench.lines.append)
    assert f"!!! {left_over.parent}: adapter_config.json left beside whole weights, used without it" in bench.lines


def test_what_cannot_be_mixed_is_refused_and_leaves_no_checkpoint(bench: Bench, base: Path, tmp_path: Path) -> None:
    sft = put_checkpoint(bench, base, "night/a", 0.4)
    adapter = put_checkpoint(bench, base, "night/b", 0.2, lora=2)
    wider = make_tiny_base(tmp_path / "wider", hidden=64, layers=1, vocabulary=400)
    deeper = make_tiny_base(tmp_path / "deeper", hidden=32, layers=2, vocabulary=400)
    deep = put_checkpoint(bench, deeper, "night/c", 0.1)
    for order, words in (
        (blend(bench, base, adapter), "is an adapter"),
        (blend(bench, wider, sft), "cannot be mixed"),
        (blend(bench, base, deep), "is no base of this checkpoint"),
        (blend(bench, base, sft, toward=deep), "has not the layout"),
    ):
        with pytest.raises(Refused, match=words):
            run_interpolation(order, bench.container, bench.lines.append)
    assert not list(bench.runs.path.glob("wise/*/checkpoint/head.pt"))


def test_complete_checkpoints_are_copied_once_and_others_never(
    bench: Bench, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = DirectoryVolume(tmp_path / "hf")
    hub.reload()
    monkeypatch.setenv("KEV_VOLUME_KEV_HF_CACHE", str(hub.path))
    path = put_checkpoint(bench, base, "night/00-trial-0", 0.4)
    order = MirrorOrder(
        run_id="mirror", sources=bench.order().sources, checkpoints=[path], repo="/hf/mirrors/kept"
    )  # fmt: skip
    assert run_mirror(order, bench.container, bench.lines.append) == {"copied": [path], "there": []}
    copy = hub.path / "mirrors/kept/night/00-trial-0"
    assert (copy / WEIGHTS).read_bytes() == (bench.runs.path / "night/00-trial-0/checkpoint" / WEIGHTS).read_bytes()
    load_checkpoint(copy)
    receipt = json.loads((bench.runs.committed / "night/00-trial-0/checkpoint/hub.json").read_text())
    assert (receipt["repo"], receipt["path"]) == ("/hf/mirrors/kept", "night/00-trial-0")
    assert run_mirror(order, bench.container, bench.lines.append) == {"copied": [], "there": [path]}

    (bench.runs.path / "night/00-trial-0/checkpoint/training_metrics.json").unlink()
    with pytest.raises(Refused, match="is not complete"):
        run_mirror(order.model_copy(update={"force": True}), bench.container, bench.lines.append)


def test_nothing_is_mirrored_to_a_public_repository(bench: Bench, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    class PublicHub:
        def create_repo(self, *_: object, **__: object) -> None: ...

        def repo_info(self, _repo: str) -> Any:
            return type("Info", (), {"private": False})

    monkeypatch.setattr(huggingface_hub, "HfApi", PublicHub)
    path = put_checkpoint(bench, base, "night/00-trial-0", 0.4)
    order = MirrorOrder(run_id="m", sources=bench.order().sources, checkpoints=[path], repo="owner/name")
    with pytest.raises(Refused, match="is public"):
        run_mirror(order, bench.container, bench.lines.append)
    assert not (bench.runs.path / "night/00-trial-0/checkpoint/hub.json").exists()


def test_a_checkpoint_that_is_there_is_scored_as_a_trial_is(bench: Bench, base: Path) -> None:
    path = put_checkpoint(bench, base, "night/00-trial-0", 0.4)
    order = bench.order({"existing": path}, study="again", index=1, existing=0)
    answer = run_trial(order, bench.container, bench.claims, bench.lines.append)
    assert answer["label"] == "existing-0" and "objective" in answer, answer
    scored = bench.runs.committed / "again/01-existing-0"
    result = json.loads((scored / "result.json").read_text())
    assert result["provenance"]["legacy_checkpoint"] is True and result["training_resources"] == {}
    assert {"result.json", "development/rows.json"} <= json.loads((scored / "manifest.json").read_text())[
        "files"
    ].keys()
    assert not (scored / "checkpoint").exists()

    gone = bench.order({"existing": "/runs/nothing"}, study="again", index=2, existing=1, nonce="b" * 32)
    with pytest.raises(NotFound, match="/runs/nothing: holds no checkpoint"):
        run_trial(gone, bench.container, bench.claims, bench.lines.append)
