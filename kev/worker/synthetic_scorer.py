"""The checkpoint of the synthetic objective where a model's would be scored: it is read and judged by the same code."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kev import files
from kev.data.render import render
from kev.predictors.prediction import Request
from kev.worker.synthetic_checkpoint import MODEL, read_model


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A request; its words count as tokens."""

    request: Request
    tokens: int
    state_tokens: int


class SyntheticScorer:
    """See `kev.trial.scoring.TrialScorer`. Raises NotFound or DamagedFile for what is no synthetic checkpoint."""

    temperature = 1.0
    dtype = "fp64"

    def __init__(self, checkpoint: Path) -> None:
        self._directory = checkpoint
        self._model = read_model(checkpoint / MODEL)
        self.run = str(checkpoint)
        """What a report calls the checkpoint."""

    def encode(self, request: Request) -> EncodedText:
        words = self.count_tokens(render(request.state))
        return EncodedText(request, words + len(request.questions), words)

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        return [
            [self._model.logits(each.request, asked) for asked in each.request.questions.values()] for each in encoded
        ]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def kernels(self, _encoded: EncodedText) -> str | None:
        return None

    @property
    def measured(self) -> dict[str, Any]:
        sha256 = hashlib.sha256(files.read_bytes(self._directory / MODEL)).hexdigest()
        return {
            "requested": self.run,
            "resolved": str(self._directory),
            "weights_sha256": sha256,
            "inference_temperature": self.temperature,
        }

    def in_context(self, _manifest: Mapping[str, Any]) -> "SyntheticScorer":
        return self

    def identity(self) -> dict[str, Any]:
        return {"weights_sha256": self.measured["weights_sha256"], "synthetic": True}

    def environment(self) -> dict[str, Any]:
        return {"packages": {"numpy": np.__version__}, "device": "cpu", "gpu": None, "backend": "numpy",
                "dtype": self.dtype, "threads": int(os.environ.get("OMP_NUM_THREADS") or 1)}  # fmt: skip

    def describe(self) -> dict[str, Any]:
        return {"run": self.run, "environment": self.environment(), "synthetic": True}
