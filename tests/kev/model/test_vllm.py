"""Reading with vLLM for the backbone: a stand-in for its LLM that really computes states, at the seam we use it by."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from kev.benchmark import main
from kev.errors import Refused
from kev.model.backbone import load_backbone
from kev.model.loading import load_checkpoint, new_model
from kev.model.saving import save_checkpoint
from kev.model.settings import Settings
from kev.predictors.checkpoint import CheckpointScorer
from kev.predictors.local import LocalPredictor
from kev.predictors.prediction import Prediction, request_of
from kev.predictors.vllm import TASK, VllmScorer, WrongStates, backbone_directory, longest_prompt
from kev.reads.records import select_partition
from kev.suite import open_suite

EVALS = Path(__file__).parents[3] / "evals"
SELECTION = select_partition(open_suite(EVALS / "heldout-stock-v1"), "development")
LARGE = {"max_state": 2048, "max_branch": 4096, "max_packed": 8192}


@dataclass
class StandIn:
    """As `vllm.LLM.encode` with its task token_embed: for each prompt all of its tokens' last states."""

    backbone: Any
    lost: int = 0
    """Tokens at the beginning whose states are not returned, as where a prefix comes from a cache."""

    def encode(
        self, prompts: Sequence[dict[str, Any]], pooling_params: Any = None, *, use_tqdm: bool = True,
        pooling_task: str | None = None,
    ) -> list[Any]:  # fmt: skip
        assert pooling_task == TASK
        return [
            SimpleNamespace(outputs=SimpleNamespace(data=self.states(each["prompt_token_ids"]))) for each in prompts
        ]

    @torch.inference_mode()
    def states(self, ids: list[int]) -> torch.Tensor:
        found: torch.Tensor = self.backbone(input_ids=torch.tensor([ids])).last_hidden_state[0]
        return found[self.lost :]


@pytest.fixture(scope="module")
def adapter(attention_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LoRA checkpoint whose adapter does something."""
    model = new_model(str(attention_base), Settings(lora=4, head_dim=128))
    with torch.no_grad():
        for name, weights in model.backbone.named_parameters():
            if "lora_B" in name:
                weights.normal_(std=0.2, generator=torch.Generator().manual_seed(len(name)))
    model.temperature = 1.5
    path = tmp_path_factory.mktemp("vllm") / "adapter"
    save_checkpoint(path, model)
    return path


def behind(run: Path, scratch: Path, **settings: Any) -> VllmScorer:
    """The checkpoint as `open_vllm` puts it behind the engine, whose backbone is opened from the directory it gets."""
    checkpoint = CheckpointScorer(str(run), manifest={"context": LARGE}, device="cpu", merge=True)
    backbone = load_backbone(backbone_directory(checkpoint, scratch))
    return VllmScorer(checkpoint, StandIn(backbone.eval(), **settings), dtype="float32")


def test_its_answers_are_those_of_the_checkpoint(adapter: Path, tmp_path: Path) -> None:
    requests = [request_of(record) for record in SELECTION.records[:6]]
    exact = LocalPredictor(CheckpointScorer(str(adapter), manifest={"context": LARGE}, device="cpu")).predict(requests)
    found = LocalPredictor(behind(adapter, tmp_path)).predict(requests)
    for one, other in zip(exact, found, strict=True):
        assert isinstance(one, Prediction) and isinstance(other, Prediction)
        assert other.kernels == "vllm" and other.temperature == 1.5
        for name, answer in one.answers.items():
            assert other.answers[name].p == pytest.approx(answer.p, abs=1e-5)


def test_an_adapter_is_merged_into_a_directory_that_any_reader_opens_and_full_weights_are_read_where_they_lie(
    adapter: Path, attention_base: Path, tmp_path: Path
) -> None:
    checkpoint = CheckpointScorer(str(adapter), device="cpu", merge=True)
    merged = transformers.AutoModel.from_pretrained(backbone_directory(checkpoint, tmp_path), local_files_only=True)
    plain = load_backbone(attention_base).state_dict()
    assert set(merged.state_dict()) == set(plain)
    assert any(not torch.equal(weights, plain[name]) for name, weights in merged.state_dict().items())
    save_checkpoint(tmp_path / "full", new_model(str(attention_base), Settings(lora=0, head_dim=128)))
    full = CheckpointScorer(str(tmp_path / "full"), device="cpu", merge=True)
    assert backbone_directory(full, tmp_path / "unused") == tmp_path / "full"
    assert not (tmp_path / "unused").exists()


def test_states_that_are_not_those_of_every_token_are_refused(adapter: Path, tmp_path: Path) -> None:
    scorer = behind(adapter, tmp_path, lost=16)
    encoded = scorer.encode(request_of(SELECTION.records[0]))
    with pytest.raises(WrongStates, match=r"vLLM returned states \(\d+, 64\), where \(\d+, 64\) belong"):
        scorer.score([encoded])


def test_isolated_options_are_refused_before_anything_is_computed(attention_base: Path, tmp_path: Path) -> None:
    model = new_model(str(attention_base), Settings(lora=0, head_dim=128, option_isolation=True))
    save_checkpoint(tmp_path / "isolated", model)
    with pytest.raises(Refused, match="isolated options need a mask"):
        behind(tmp_path / "isolated", tmp_path)


def test_a_read_with_it_is_told_from_an_exact_one(adapter: Path, tmp_path: Path) -> None:
    scorer = behind(adapter, tmp_path)
    exact = CheckpointScorer(str(adapter), manifest={"context": LARGE}, device="cpu")
    assert scorer.identity() != exact.identity()
    assert scorer.identity()["weights_sha256"] == exact.identity()["weights_sha256"]
    assert scorer.describe()["environment"]["backend"] == "vllm"


def test_no_prompt_is_longer_than_the_suite_or_the_backbone_admits(adapter: Path) -> None:
    small = CheckpointScorer(str(adapter), manifest={"context": LARGE}, device="cpu")
    positions = load_checkpoint(adapter).config.max_position_embeddings
    assert longest_prompt(small) == min(4096, positions)
    large = small.in_context({"context": {"max_state": 2**20, "max_branch": 2**20, "max_packed": 2**21}})
    assert longest_prompt(large) == positions


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_command_says_so_in_one_line(
    adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--run", str(adapter), "--suite", str(EVALS / "heldout-stock-v1"), "--out", str(tmp_path / "read")]
    assert main([*given, "--backend", "vllm"]) == 1
    complaint = capsys.readouterr().err
    assert "pip install 'kevtui[gpu]'" in complaint and complaint.count("\n") == 1
    assert not (tmp_path / "read").exists()
    with pytest.raises(SystemExit):
        main([*given, "--backend", "vllm", "--device", "cpu"])
