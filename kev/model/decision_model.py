"""The decision model: backbone, pointer head and encoder, in training and in reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from kev.checkpoint import Head
from kev.model.backbone import is_hybrid, last_states
from kev.model.batch import Batch, collate
from kev.model.context import ROW_PASS_TOKENS
from kev.model.encoding import Encoder, Encoding
from kev.model.head import PointerHead, Scores

CPU_PASS_TOKENS = 4_096
"""Padded tokens of one pass on a CPU, where larger ones leave its caches and are slower."""


class DecisionModel(nn.Module):
    """Scores the options of typed questions.

    `values` is what its `head.pt` says, unknown keys included; the tensors and the temperature in it are those of
    `head` whenever it is saved. `directory` is where the tokenizer's files lie. `remarks` say, a line each, which files
    beside those that it was opened from were not used.
    """

    def __init__(self, backbone: nn.Module, head: PointerHead, encoder: Encoder, values: Head, directory: Path) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.encoder = encoder
        self.values = values
        self.directory = directory
        self.remarks: tuple[str, ...] = ()

    @property
    def config(self) -> Any:
        """The backbone's configuration."""
        return self.backbone.config

    @property
    def hybrid(self) -> bool:
        """Whether the backbone is recurrent somewhere, so that questions are read as rows."""
        return is_hybrid(self.backbone)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.head.q.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the backbone's weights; the head's is always fp32."""
        return cast(torch.dtype, self.backbone.dtype)

    @property
    def temperature(self) -> float:
        """What logits are divided by in evaluation mode; 1 is raw."""
        return self.head.temperature

    @temperature.setter
    def temperature(self, value: float) -> None:
        self.head.temperature = value

    def collate(self, encodings: Sequence[Encoding], *, rows: bool | None = None) -> Batch:
        """The encodings as a batch on the model's device, in the form that the backbone reads unless `rows` says."""
        if rows is None:
            rows = self.reads_rows(encodings)
        return collate(encodings, rows=rows).to(self.device)

    def reads_rows(self, encodings: Sequence[Encoding]) -> bool:
        """Whether these are read as rows: on a hybrid backbone, and where one is too long for a packed mask."""
        return self.hybrid or any(len(encoding) > ROW_PASS_TOKENS for encoding in encodings)

    def forward(self, batch: Batch) -> Scores:
        """Logits of every question of the batch: raw in training mode, divided by the temperature in evaluation."""
        return cast(Scores, self.head(last_states(self.backbone, batch), batch))

    @torch.inference_mode()
    def score(self, encodings: Sequence[Encoding], *, pass_tokens: int | None = None) -> list[list[Tensor]]:
        """For every record, one fp32 tensor of logits a question, on the CPU, at the model's temperature.

        Records of similar length share a pass of at most `pass_tokens` padded tokens, by default what suits the
        device. A record read as rows is divided among passes where its rows are too many for one; a single sequence
        that is longer has a pass to itself.
        """
        budget = pass_tokens or (CPU_PASS_TOKENS if self.device.type == "cpu" else ROW_PASS_TOKENS)
        training = self.training
        self.eval()
        try:
            scored: list[list[Tensor]] = [[] for _ in encodings]
            parts = [part for index, encoding in enumerate(encodings) for part in self._parts(index, encoding, budget)]
            pieces: dict[tuple[int, int], list[Tensor]] = {}
            for group in _passes(parts, budget):
                scores = self(self.collate([part.encoding for part in group], rows=group[0].rows))
                questions = iter(Scores(scores.logits.cpu(), scores.option_counts.cpu()).ragged())
                for part in group:
                    pieces[part.record, part.first] = list(islice(questions, len(part.encoding.decide_idx)))
            for (record, _), piece in sorted(pieces.items()):
                scored[record] += piece
            return scored
        finally:
            self.train(training)

    def _parts(self, record: int, encoding: Encoding, budget: int) -> "Iterator[_Part]":
        rows = self.reads_rows([encoding])
        count = len(encoding.decide_idx)
        step = max(1, budget // encoding.longest_row) if rows else count
        for first in range(0, count, step):
            part = encoding if step >= count else encoding.only(first, min(first + step, count))
            yield _Part(record, first, part, rows)


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive questions of a record, from number `first`, and the form in which they are read."""

    record: int
    first: int
    encoding: Encoding
    rows: bool

    @property
    def sequences(self) -> int:
        return len(self.encoding.decide_idx) if self.rows else 1

    @property
    def length(self) -> int:
        return self.encoding.longest_row if self.rows else len(self.encoding)


def _passes(parts: Sequence[_Part], budget: int) -> Iterator[list[_Part]]:
    """Parts of one form, longest first, in groups whose sequences times longest sequence stay within `budget`."""
    group: list[_Part] = []
    for part in sorted(parts, key=lambda part: (part.rows, -part.length)):
        sequences = part.sequences + sum(member.sequences for member in group)
        if group and (part.rows != group[0].rows or sequences * group[0].length > budget):
            yield group
            group = []
        group.append(part)
    if group:
        yield group
