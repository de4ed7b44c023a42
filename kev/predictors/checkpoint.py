"""A checkpoint of the decision model as a scorer: exact in fp32, and marked where it is not."""

import copy
import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev import files
from kev.checkpoint import HEAD
from kev.errors import UsageError
from kev.predictors.local import TooLong
from kev.predictors.prediction import Request

if TYPE_CHECKING:
    from kev.model.decision_model import DecisionModel
    from kev.model.encoding import Encoding

PACKAGES = ("torch", "transformers", "tokenizers", "peft", "safetensors", "numpy")
EFFICIENT = "efficient"


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request as token ids."""

    encoding: "Encoding"

    @property
    def tokens(self) -> int:
        return len(self.encoding)

    @property
    def state_tokens(self) -> int:
        return self.encoding.state_tokens


class CheckpointScorer:
    """Scores requests with the checkpoint `run`, a directory or a Hub id, in the context of `manifest`.

    `temperature` replaces that of the checkpoint; 1 is raw. Raises NotFound, DamagedFile or Refused as the checkpoint
    deserves, and UsageError where torch is missing.
    """

    def __init__(
        self,
        run: str,
        *,
        manifest: Mapping[str, Any] | None = None,
        device: str | None = None,
        dtype: str | None = None,
        temperature: float | None = None,
        serving: bool = False,
        merge: bool | None = None,
    ) -> None:
        try:
            import torch
        except ImportError:
            raise UsageError("a checkpoint needs torch: install the extra, `pip install 'kevtui[train]'`") from None
        from kev.model.context import SERVING, Context
        from kev.model.loading import load_checkpoint
        from kev.model.places import locate

        self._torch = torch
        self.run = run
        self.device = device or _best_device()
        _compute_exactly()
        self.directory = locate(run)
        self.model: DecisionModel = load_checkpoint(
            run,
            dtype=dtype,
            merge=merge,
            temperature=temperature,
            context=SERVING if serving else Context.from_manifest(manifest or {}),
            device=self.device,
        )
        self.encoder = self.model.encoder
        self._lock = threading.Lock()

    def in_context(self, manifest: Mapping[str, Any]) -> "CheckpointScorer":
        """The same model with the context limits of another suite's manifest."""
        from kev.model.context import Context

        other = copy.copy(self)
        other.encoder = self.model.encoder.within(Context.from_manifest(manifest))
        return other

    @property
    def temperature(self) -> float:
        return float(self.model.temperature)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Which files beside the checkpoint's own were not used, a line each."""
        return self.model.remarks

    @property
    def max_state(self) -> int:
        """Tokens that a state may have."""
        return self.encoder.context.max_state

    @property
    def dtype(self) -> str:
        """The type that the backbone computes in."""
        names = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
        return names.get(str(self.model.dtype), str(self.model.dtype))

    def encode(self, request: Request) -> EncodedRequest:
        from kev.model.context import ContextOverflow

        try:
            questions = list(request.questions.values())
            return EncodedRequest(self.encoder.encode(request.state, questions, name=request.name))
        except ContextOverflow as error:
            raise TooLong(str(error)) from None

    def score(self, encoded: Sequence[EncodedRequest]) -> list[list[list[float]]]:
        found: list[list[list[float]]] = [[] for _ in encoded]
        with self._lock:
            for efficient in (False, True):
                chosen = [place for place, each in enumerate(encoded) if self._is_efficient(each) == efficient]
                if not chosen:
                    continue
                with _kernels(efficient):
                    scored = self.model.score([encoded[place].encoding for place in chosen])
                for place, questions in zip(chosen, scored, strict=True):
                    found[place] = [logits.double().tolist() for logits in questions]
        return found

    def count_tokens(self, text: str) -> int:
        return len(self.encoder.tokenizer.encode(text, add_special_tokens=False).ids)

    def kernels(self, encoded: EncodedRequest) -> str | None:
        return EFFICIENT if self._is_efficient(encoded) else None

    def identity(self) -> dict[str, Any]:
        measured = self.measured
        context = self.encoder.context
        return {
            "head_sha256": measured["head_sha256"],
            "weights_sha256": measured["weights_sha256"],
            "temperature": self.temperature,
            "dtype": self.dtype,
            "device": self.device,
            "threads": self._torch.get_num_threads(),
            "torch": self._torch.__version__,
            "context": [context.max_state, context.max_branch, context.max_packed],
        }

    @cached_property
    def measured(self) -> dict[str, Any]:
        """Which weights are scored, by their hashes. They are read through once."""
        return measured_checkpoint(self.run, self.directory, self.temperature)

    def describe(self) -> dict[str, Any]:
        return {"run": self.run, "environment": self.environment(), "remarks": list(self.remarks)}

    def environment(self) -> dict[str, Any]:
        """What the figures were computed with."""
        cuda = self._torch.cuda
        return {
            "packages": {name: _version(name) for name in PACKAGES},
            "device": self.device,
            "gpu": cuda.get_device_name() if self.device.startswith("cuda") else None,
            "backend": "torch",
            "dtype": self.dtype,
            "threads": self._torch.get_num_threads(),
        }

    def _is_efficient(self, encoded: EncodedRequest) -> bool:
        # A score matrix of a row this long does not fit an accelerator; on a CPU everything is computed exactly.
        from kev.model.context import ROW_PASS_TOKENS

        return self.device.startswith("cuda") and encoded.encoding.longest_row > ROW_PASS_TOKENS


def measured_checkpoint(requested: str, directory: Path, temperature: float) -> dict[str, Any]:
    """Which weights were scored, as provenance.json says it. Raises NotFound or DamagedFile."""
    from kev.checkpoint import read_head
    from kev.model.layout import find_layout

    return {
        "requested": requested,
        "resolved": str(directory),
        "head_sha256": hashlib.sha256(files.read_bytes(directory / HEAD)).hexdigest(),
        "weights_sha256": find_layout(directory, read_head(directory)).sha256,
        "inference_temperature": temperature,
    }


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _compute_exactly() -> None:
    """Turn off what trades digits for speed: TF32 moves a probability by about 0.001, as far as isolation may."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def _kernels(efficient: bool) -> Any:
    """The attention kernels of a pass: the exact one, or those that hold no score matrix."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if efficient:
        return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION])
    return sdpa_kernel([SDPBackend.MATH])


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
