"""Weights between two models of one architecture: alpha of a checkpoint, and the rest of what it is drawn toward.

    mixed = other + alpha * (checkpoint - other)

computed in fp32 and rounded once to the type that is stored, so that where both agree nothing changes. Weights are
read and written a shard at a time: no model is ever in memory as a whole, but for one that is an adapter on its base.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from kev import files
from kev.checkpoint import HEAD, Head, write_head
from kev.errors import NotFound, Refused
from kev.model.backbone import find_backbone
from kev.model.layout import CONFIG, INDEX, WEIGHTS, find_layout
from kev.model.loading import load_checkpoint, open_head
from kev.model.saving import TOKENIZER_FILES

PREFIXES = ("", "model.", "model.language_model.", "language_model.model.", "language_model.")
"""What stands before a backbone's names in the files of bases that hold more than a backbone."""

NOT_KEPT = ("temperature_fit", "snapshot", "release")
"""Keys of a head that speak of the very weights it came with."""


class Stored:
    """Tensors in safetensors files, by the names that a backbone has for them; read when asked for."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._places: dict[str, tuple[Path, str]] = {}
        for path in paths:
            with safe_open(path, framework="pt") as shard:
                self._places |= {name: (path, name) for name in shard.keys()}  # noqa: SIM118 - a method, no mapping

    def named_as(self, names: set[str]) -> "Stored | None":
        """These tensors under those of `names`, if all of them are here behind one prefix."""
        for prefix in PREFIXES:
            if all(prefix + name in self._places for name in names):
                found = Stored(())
                found._places = {name: self._places[prefix + name] for name in names}
                return found
        return None

    @property
    def names(self) -> set[str]:
        return set(self._places)

    def get(self, name: str) -> Tensor:
        path, stored = self._places[name]
        with safe_open(path, framework="pt") as shard:
            return shard.get_tensor(stored)  # type: ignore[no-any-return]


class Loaded:
    """Tensors in memory."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    @property
    def names(self) -> set[str]:
        return set(self._tensors)

    def get(self, name: str) -> Tensor:
        return self._tensors[name]


def open_other(directory: Path, names: set[str], dtype: str) -> Stored | Loaded:
    """The weights of `directory`, a checkpoint or a base, under `names`.

    An adapter is merged into its base, in `dtype`. Raises Refused where the names are not the same, and what opening
    raises.
    """
    found: Stored | Loaded
    if not (directory / HEAD).exists():
        base = Stored(find_backbone(directory).weights)
        named = base.named_as(names)
        if named is None:
            lacking = min(names - base.names, default="a common prefix")
            raise Refused(f"{directory}: is no base of this checkpoint; it has no weights {lacking}")
        return named
    head = open_head(directory)
    layout = find_layout(directory, head)
    if layout.kind == "full":
        found = Stored(layout.weights)
    else:
        found = Loaded(load_checkpoint(directory, dtype=dtype, merge=True).backbone.state_dict())
    if found.names != names:
        different = min(found.names ^ names)
        raise Refused(f"{directory}: has not the layout of the checkpoint; only one of them has weights {different}")
    return found


def left_overs(directory: Path) -> tuple[str, ...]:
    """Which files of `directory`, a checkpoint or a base, take no part, a line each. Raises what opening it raises."""
    if (directory / HEAD).exists():
        return find_layout(directory, open_head(directory)).remarks
    return find_backbone(directory).remarks


def interpolate(sft: Path, other: Path, alpha: float, out: Path, *, blend_head: bool, note: Mapping[str, Any]) -> int:
    """Write into `out` the checkpoint that is `alpha` of `sft`, full weights, and the rest of `other`.

    The head is that of `sft`, or with `blend_head` mixed as the weights are; its temperature is 1, since no fitted one
    is of these weights. `note` is kept in it under `interpolation`. Returns the number of tensors. Raises Refused for
    an adapter, for another layout or shape, and where a checkpoint lies already; NotFound or DamagedFile.
    """
    if (out / HEAD).exists():
        raise Refused(f"{out}: a checkpoint lies here already; it is never replaced")
    head = open_head(sft)
    layout = find_layout(sft, head)
    if layout.kind != "full":
        raise Refused(f"{sft}: is an adapter; full weights are what is mixed")
    own = Stored(layout.weights)
    theirs = open_other(other, own.names, str(head.get("weights_dtype")))
    mixed_head = _mixed_head(head, open_head(other) if blend_head else None, alpha, note, sft)
    for path in layout.weights:
        _write_shard(path, out / path.name, theirs, alpha)
    # An index beside a single file is left over from another sharding.
    index = () if layout.weights == (sft / WEIGHTS,) else (INDEX,)
    for name in (CONFIG, *index, *TOKENIZER_FILES):
        try:
            files.write_atomic(out / name, files.read_bytes(sft / name))
        except NotFound:
            continue
    write_head(out, mixed_head)
    return len(own.names)


def mix(own: Tensor, other: Tensor, alpha: float, name: str) -> Tensor:
    """`alpha` of `own` and the rest of `other`. Raises Refused for shapes, or numbers that cannot be mixed."""
    if own.shape != other.shape:
        raise Refused(f"weights {name}: {tuple(own.shape)} and {tuple(other.shape)} cannot be mixed")
    if not own.is_floating_point():
        if not torch.equal(own, other.to(own.dtype)):
            raise Refused(f"weights {name}: are whole numbers that differ, and cannot be mixed")
        return own
    return torch.lerp(other.float(), own.float(), alpha).to(own.dtype)


def _write_shard(path: Path, target: Path, theirs: Stored | Loaded, alpha: float) -> None:
    with safe_open(path, framework="pt") as shard:
        mixed = {
            name: mix(shard.get_tensor(name), theirs.get(name), alpha, name).contiguous()
            for name in shard.keys()  # noqa: SIM118 - a method, no mapping
        }
    files.write_through(target, lambda temporary: save_file(mixed, temporary, metadata={"format": "pt"}))


def _mixed_head(head: Head, other: Head | None, alpha: float, note: Mapping[str, Any], sft: Path) -> Head:
    values = {key: value for key, value in head.values.items() if key not in NOT_KEPT}
    if other is not None:
        tensors, others = head.get("head"), other.get("head")
        if not isinstance(others, Mapping) or tensors.keys() != others.keys():
            raise Refused(f"{sft}: its head and that of the other checkpoint are not of one layout")
        values["head"] = {name: mix(tensor, others[name], alpha, f"head.{name}") for name, tensor in tensors.items()}
    return Head({**values, "temperature": 1.0, "interpolation": dict(note)})
