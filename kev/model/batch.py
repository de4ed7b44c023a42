"""Several encodings as the tensors of one forward pass: packed, or every question as a row of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kev.errors import Refused
from kev.model.encoding import OUTSIDE_OPTIONS, Encoding
from kev.model.mask import PADDING_SEGMENT

UNKNOWN_LABEL = -100
"""What cross-entropy in torch ignores."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """B sequences of at most L tokens, right-padded, with Q questions and N options in all.

    `seg` tells the segments of packed sequences; a batch of rows has none, and is causal. `decide` [Q] and `close` [N]
    are places in the sequences laid end to end (b * L + i); `question` [N] is each option's question and `slot` [N] its
    place among that question's options; `record` [Q] is each question's record, `labels` [Q] its label's slot.
    """

    ids: Tensor
    pos: Tensor
    seg: Tensor | None
    opt: Tensor | None
    decide: Tensor
    close: Tensor
    question: Tensor
    slot: Tensor
    option_counts: Tensor
    record: Tensor
    labels: Tensor
    records: int
    widest: int
    """Options of the question that has most."""
    tokens: int
    """Tokens that are no padding."""

    @property
    def padded_tokens(self) -> int:
        """What the pass costs: B x L."""
        return self.ids.numel()

    def to(self, device: torch.device | str) -> "Batch":
        """The batch on another device."""
        values: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        moved: dict[str, Any] = {
            name: value.to(device) if torch.is_tensor(value) else value for name, value in values.items()
        }
        return Batch(**moved)


def collate(encodings: Sequence[Encoding], *, rows: bool = False) -> Batch:
    """The encodings as one batch. Raises Refused for isolated options in rows, or beside plain ones."""
    isolated = {encoding.option_isolation for encoding in encodings}
    if len(isolated) != 1:
        raise Refused("a batch holds records with isolated options or records without, and at least one")
    if rows and True in isolated:
        raise Refused("isolated options need the packed form, which a recurrent backbone cannot read")
    places = [_places_in_rows(encoding) if rows else _places_packed(encoding) for encoding in encodings]
    sequences = [span for place in places for span in place.sequences]
    lengths = np.array([len(ids) for ids, _ in sequences])
    width = int(lengths.max())
    first = np.cumsum([0, *(len(place.sequences) for place in places)])[:-1] * width
    counts = np.concatenate([encoding.option_counts for encoding in encodings])
    owner = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    packed = [] if rows else encodings
    return Batch(
        ids=_padded([ids for ids, _ in sequences], width, 0),
        pos=_padded([pos for _, pos in sequences], width, 0),
        seg=_padded([encoding.seg for encoding in packed], width, PADDING_SEGMENT) if packed else None,
        opt=_padded([encoding.opt for encoding in packed], width, OUTSIDE_OPTIONS) if True in isolated else None,
        decide=_joined([place.decide(width) + start for place, start in zip(places, first, strict=True)]),
        close=_joined([place.close(width) + start for place, start in zip(places, first, strict=True)]),
        question=torch.from_numpy(owner),
        slot=torch.from_numpy(np.arange(len(owner)) - starts[owner]),
        option_counts=torch.from_numpy(counts),
        record=torch.from_numpy(np.repeat(np.arange(len(encodings)), [len(e.decide_idx) for e in encodings])),
        labels=torch.tensor([label for encoding in encodings for label in _labels(encoding)]),
        records=len(encodings),
        widest=int(counts.max()),
        tokens=int(lengths.sum()),
    )


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Places:
    """A record's sequences, and where in them its questions are decided and its options close."""

    sequences: list[tuple[Ints, Ints]]
    decide_row: Ints
    decide_column: Ints
    close_row: Ints
    close_column: Ints

    def decide(self, width: int) -> Ints:
        return self.decide_row * width + self.decide_column

    def close(self, width: int) -> Ints:
        return self.close_row * width + self.close_column


def _places_packed(encoding: Encoding) -> _Places:
    nowhere = np.zeros(1, dtype=np.int64)
    return _Places([(encoding.ids, encoding.pos)], nowhere, encoding.decide_idx, nowhere, encoding.close_idx)


def _places_in_rows(encoding: Encoding) -> _Places:
    state = slice(0, encoding.state_length)
    sequences = [
        (
            np.concatenate([encoding.ids[state], encoding.ids[branch]]),
            np.concatenate([encoding.pos[state], encoding.pos[branch]]),
        )
        for branch in encoding.branches
    ]
    # In its row a branch lies right behind the state, so everything in it moves by what lay between them.
    shift = np.array([branch.start for branch in encoding.branches]) - encoding.state_length
    rows = np.arange(len(sequences))
    owner = np.repeat(rows, encoding.option_counts)
    return _Places(sequences, rows, encoding.decide_idx - shift, owner, encoding.close_idx - shift[owner])


def _labels(encoding: Encoding) -> Sequence[int]:
    return encoding.labels if encoding.labels is not None else [UNKNOWN_LABEL] * len(encoding.decide_idx)


def _padded(values: Sequence[Ints], width: int, filler: int) -> Tensor:
    table = np.full((len(values), width), filler, dtype=np.int64)
    for row, value in zip(table, values, strict=True):
        row[: len(value)] = value
    return torch.from_numpy(table)


def _joined(values: Sequence[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate(values))
