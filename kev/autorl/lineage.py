"""Whether a model was made from the base: tensor by tensor, by shape, by equality and by direction.

Training moves weights away from where they began; weights of another model point anywhere. The cosine between a
matrix and that of the base is 1 for a copy, above 0.9 for most fine-tuning, and near 0 for matrices that have nothing
to do with each other. One-dimensional tensors (norms, biases) say nothing and are left out of it.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kev.errors import DamagedFile
from kev.model.tensors import FLOATS, Tensor

FOREIGN_BELOW = 0.1
"""Median cosine. Thousands of weights that are independent stay far below it; a model trained hard, from random
weights even, stays above."""
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "lm_head.weight", "embed_out.weight")
OPTIONAL = ("lm_head.weight", "rotary_emb.inv_freq", "masked_bias", "attn.bias", "embed_out.weight")
"""Ends of names that some writers leave out: tied to another tensor, or computed."""
PREFIXES = ("model.", "transformer.", "language_model.", "base_model.")

Kind = Literal["descendant", "no change", "foreign"]


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the weights say about where they come from."""

    kind: Kind
    words: str
    tensors: int = 0
    equal: int = 0
    """Tensors of the base whose values did not change."""
    cosine: float | None = None
    """Median over the matrices; None where there is none to compare."""
    relative_change: float | None = None
    """Norm of the change over the norm of the base, all matrices together."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class NotNumbers(ValueError):
    """A tensor holds NaN or an infinity."""


def trace(
    model: Mapping[str, Tensor],
    base: Mapping[str, Tensor],
    *,
    known: Sequence[tuple[str, Mapping[str, Tensor]]] = (),
    ignore: Sequence[str] = (),
) -> Lineage:
    """How `model` relates to `base`, and to `known` models by name, which nobody may submit as their own.

    `ignore` are ends of names that the task adds to a model. Raises NotNumbers, and DamagedFile for torn files.
    """
    ours, theirs = _plain_names(model), _plain_names(base)
    if words := _difference(ours, theirs, ignore):
        return Lineage("foreign", words, len(ours))
    shared = [name for name in theirs if name in ours]
    measured = [_measure(name, ours[name], theirs[name]) for name in shared]
    equal = sum(each.equal for each in measured)
    matrices = [each for each in measured if each.is_matrix]
    cosine = statistics.median(each.cosine for each in matrices) if matrices else None
    norm = sum(each.norm for each in matrices)
    change = math.sqrt(sum(each.change for each in matrices) / norm) if norm else None
    if equal == len(measured):
        return Lineage("no change", "every tensor is that of the base", len(ours), equal, cosine, change)
    if cosine is not None and cosine < FOREIGN_BELOW:
        words = f"its matrices point elsewhere than the base's (median cosine {cosine:.3f}, below {FOREIGN_BELOW})"
        return Lineage("foreign", words, len(ours), equal, cosine, change)
    for name, tensors in known:
        if closer := _closeness(ours, _plain_names(tensors), sum(each.change for each in matrices)):
            return Lineage("foreign", f"nearer to {name} than to the base ({closer})", len(ours), equal, cosine, change)
    return Lineage("descendant", "made from the base", len(ours), equal, cosine, change)


@dataclass(frozen=True, slots=True)
class _Measured:
    equal: bool
    is_matrix: bool
    cosine: float = 1.0
    norm: float = 0.0
    """Square of the base's."""
    change: float = 0.0
    """Square of the difference's."""


def _measure(name: str, ours: Tensor, theirs: Tensor) -> _Measured:
    plain = theirs.dtype == "BF16" or theirs.dtype in FLOATS
    same_type = ours.dtype == theirs.dtype
    is_matrix = plain and len(theirs.shape) >= 2
    if same_type and ours.shape == theirs.shape and ours.sha256() == theirs.sha256():
        _ = sum(1 for _ in _checked(name, ours))
        return _Measured(True, is_matrix)
    if not plain:
        return _Measured(False, False)
    import numpy

    dot = norm = other = change = 0.0
    equal = ours.shape == theirs.shape
    for left, right in zip(_checked(name, ours), _checked(name, theirs), strict=False):
        size = min(len(left), len(right))  # embeddings with more rows: the rows they share
        left, right = left[:size].astype(numpy.float64), right[:size].astype(numpy.float64)
        equal = equal and bool(numpy.array_equal(_as(ours, theirs, left), _as(ours, theirs, right)))
        dot += float(left @ right)
        norm += float(right @ right)
        other += float(left @ left)
        change += float(((left - right) ** 2).sum())
    if is_matrix and norm and not other:
        # Copies that set aside their size first and break off leave this, under a header that is whole.
        raise DamagedFile(
            ours.path, f"{name} holds nothing but zeros, unlike the base's: was the copy or the save cut off?"
        )
    length = math.sqrt(norm * other)
    return _Measured(equal, is_matrix, dot / length if length else 0.0, norm, change)


def _as(ours: Tensor, theirs: Tensor, values: Any) -> Any:
    """`values` in the coarser of the two types: a base that is only stored in another one has not changed."""
    import numpy

    types = {ours.dtype, theirs.dtype}
    if len(types) == 1:
        return values
    single = values.astype(numpy.float32)
    if "BF16" in types:
        bits = single.view(numpy.uint32)
        # Round half to even, as every converter does.
        return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return single.astype(numpy.float16) if "F16" in types else single


def _checked(name: str, tensor: Tensor) -> Iterator[Any]:
    import numpy

    for piece in tensor.values():
        if not numpy.isfinite(piece).all():
            raise NotNumbers(f"{name}: holds values that are no numbers; the training diverged")
        yield piece


def _difference(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], ignore: Sequence[str]) -> str:
    """Why the two are not the same architecture; empty where they are."""
    for name in theirs.keys() - ours.keys():
        if not name.endswith(OPTIONAL):
            return f"{name} of the base is missing"
    for name in ours.keys() - theirs.keys():
        if not name.endswith((*OPTIONAL, *ignore)):
            return f"{name} is not in the base"
    for name in ours.keys() & theirs.keys():
        mine, base = ours[name].shape, theirs[name].shape
        grown = name.endswith(EMBEDDINGS) and mine[1:] == base[1:] and mine[:1] >= base[:1]
        if mine != base and not grown:
            return f"{name} has the shape {list(mine)}, the base's {list(base)}"
    return ""


def _closeness(ours: Mapping[str, Tensor], known: Mapping[str, Tensor], change: float) -> str:
    """How much nearer a known model is than the base; empty where it is not, or is of another architecture."""
    if _difference(ours, known, ()):
        return ""
    measured = [_measure(name, ours[name], known[name]) for name in known if name in ours]
    other = sum(each.change for each in measured if each.is_matrix)
    return f"{math.sqrt(other):.3g} away, the base {math.sqrt(change):.3g}" if other < change else ""


def _plain_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """By names without the prefix that tells a bare backbone from one under a head."""
    found = {}
    for name, tensor in tensors.items():
        plain = name
        for prefix in PREFIXES:
            plain = plain.removeprefix(prefix)
        found[plain] = tensor
    return found
