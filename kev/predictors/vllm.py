"""A checkpoint of the decision model whose backbone runs in vLLM: fast on a GPU, and marked as not exact.

vLLM generates text or pools hidden states. Pooled for every token (its task `token_embed`, without normalisation) it
gives what the pointer head needs; the head itself stays here, in fp32. Every question is a prompt of its own, state and
branch, which is the model's row form. vLLM reads no prefix cache for this task, so the state is computed anew for each.
"""

import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from kev.errors import KevError, Refused, UsageError
from kev.predictors.checkpoint import CheckpointScorer, EncodedRequest
from kev.predictors.prediction import Request

TASK = "token_embed"
KERNELS = "vllm"


class WrongStates(KevError):
    """vLLM returned other hidden states than those of the tokens it was given."""


class Engine(Protocol):
    """What is used of `vllm.LLM`: prompts as token ids in, for each an object with `outputs.data` [L, d] out."""

    def encode(
        self, prompts: Any, pooling_params: Any = None, *, use_tqdm: bool = True, pooling_task: Any = None
    ) -> Sequence[Any]: ...


class VllmScorer:
    """Scores with `engine` for the backbone, and with `checkpoint` for all else: encoder, head, temperature, hashes."""

    def __init__(self, checkpoint: CheckpointScorer, engine: Engine, *, pooling: Any = None, dtype: str) -> None:
        if checkpoint.encoder.option_isolation:
            raise Refused(
                f"{checkpoint.run}: its isolated options need a mask that vLLM does not take; read with torch"
            )
        self._checkpoint = checkpoint
        self._head = checkpoint.model.head.cpu().eval()
        self._engine = engine
        self._pooling = pooling
        self.dtype = dtype

    @property
    def temperature(self) -> float:
        return self._checkpoint.temperature

    @property
    def remarks(self) -> tuple[str, ...]:
        """Which files beside the checkpoint's own were not used, a line each."""
        return self._checkpoint.remarks

    def encode(self, request: Request) -> EncodedRequest:
        return self._checkpoint.encode(request)

    def score(self, encoded: Sequence[EncodedRequest]) -> list[list[list[float]]]:
        """Logits for each request, question and option. Raises WrongStates where vLLM returns other states."""
        import torch

        from kev.model.batch import collate

        rows = [
            [each.encoding.only(question, question + 1) for question in range(len(each.encoding.decide_idx))]
            for each in encoded
        ]
        flat = [row for record in rows for row in record]
        prompts = [{"prompt_token_ids": row.ids.tolist()} for row in flat]
        outputs = self._engine.encode(prompts, self._pooling, use_tqdm=False, pooling_task=TASK)
        if len(outputs) != len(flat):
            raise WrongStates(f"vLLM answered {len(outputs)} of {len(flat)} prompts")
        logits = []
        with torch.inference_mode():
            for row, output in zip(flat, outputs, strict=True):
                states = torch.as_tensor(output.outputs.data).cpu()
                wanted = (len(row), self._head.q.in_features)
                if tuple(states.shape) != wanted:
                    raise WrongStates(f"{row.name}: vLLM returned states {tuple(states.shape)}, where {wanted} belong")
                [scored] = self._head(states[None], collate([row], rows=True)).ragged()
                logits.append(scored.double().tolist())
        found = iter(logits)
        return [[next(found) for _ in record] for record in rows]

    def count_tokens(self, text: str) -> int:
        return self._checkpoint.count_tokens(text)

    def kernels(self, encoded: EncodedRequest) -> str | None:  # noqa: ARG002 - all are computed alike
        return KERNELS

    def identity(self) -> dict[str, Any]:
        return {**self._checkpoint.identity(), "backend": KERNELS, "vllm": _version(), "dtype": self.dtype}

    def describe(self) -> dict[str, Any]:
        described = self._checkpoint.describe()
        environment = {**described["environment"], "backend": KERNELS, "vllm": _version(), "dtype": self.dtype}
        return {**described, "environment": environment}


def open_vllm(run: str, *, manifest: Mapping[str, Any] | None = None, dtype: str = "bfloat16") -> VllmScorer:
    """The checkpoint `run` behind vLLM on this machine's GPU, in the context of `manifest`.

    An adapter is merged and written to a temporary directory first. Raises UsageError without vLLM, and what
    CheckpointScorer raises.
    """
    try:
        from vllm import LLM, PoolingParams  # type: ignore[import-not-found,unused-ignore]
        from vllm.config import PoolerConfig  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UsageError("reading with vLLM needs it: install the extra, `pip install 'kevtui[gpu]'`") from None
    checkpoint = CheckpointScorer(run, manifest=manifest, device="cpu", merge=True)
    with tempfile.TemporaryDirectory(prefix="kev-vllm-") as scratch:
        engine = LLM(
            model=str(backbone_directory(checkpoint, Path(scratch))),
            runner="pooling",
            convert="embed",
            pooler_config=PoolerConfig(task=TASK, use_activation=False),
            dtype=dtype,
            skip_tokenizer_init=True,
            max_model_len=longest_prompt(checkpoint),
            seed=0,
        )
    return VllmScorer(checkpoint, engine, pooling=PoolingParams(use_activation=False), dtype=dtype)


def backbone_directory(checkpoint: CheckpointScorer, scratch: Path) -> Path:
    """A directory with the checkpoint's backbone and nothing else: its own, or a copy in `scratch`.

    An adapter is merged into the copy, and files that were left over beside the weights are not in it.
    """
    if checkpoint.model.values.get("weights") == "full" and not checkpoint.remarks:
        return checkpoint.directory
    backbone: Any = checkpoint.model.backbone
    backbone.save_pretrained(scratch)
    return scratch


def longest_prompt(checkpoint: CheckpointScorer) -> int:
    """Tokens of the longest state and question that the suite admits and the backbone has positions for."""
    positions = getattr(checkpoint.model.config.get_text_config(), "max_position_embeddings", None)
    limit = checkpoint.encoder.context.max_branch
    return min(limit, positions) if isinstance(positions, int) else limit


def _version() -> str | None:
    try:
        return metadata.version("vllm")
    except metadata.PackageNotFoundError:
        return None
