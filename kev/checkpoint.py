"""A checkpoint's `head.pt`: the pointer head and what the model was trained with; and its twin without tensors.

`head.pt` is what every reader of the format knows. `head.json` says the same, less the tensors, to those who have no
torch or trust no pickle; it names the hash of the `head.pt` that it was written with, so that an old one is seen.
"""

import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile
from kev.torch_files import load_weights_only

HEAD = "head.pt"
TWIN = "head.json"
HEAD_SHA256 = "head_sha256"
TENSORS = "tensors"

DEFAULTS: Mapping[str, Any] = {
    "base_revision": None,
    "lora": 0,
    "head_dim": 256,
    "option_isolation": False,
    "special_embeddings": False,
    "weights_dtype": "fp32",
    "temperature": 1.0,
    "holdout": [],
    "weights": "lora",
}
"""What older files leave out."""


@dataclass(frozen=True, slots=True)
class Head:
    """Everything in a `head.pt`, unknown keys included."""

    values: Mapping[str, Any]

    def get(self, key: str) -> Any:
        """The value of `key`, or the default that a file without it means."""
        return self.values.get(key, DEFAULTS.get(key))

    @property
    def base(self) -> str:
        """The backbone, by Hub id or path."""
        return str(self.values["base"])

    @property
    def temperature(self) -> float:
        """What the head divides its logits by; 1 is raw."""
        return float(self.get("temperature"))

    def changed(self, **values: Any) -> "Head":
        """This head with some values replaced and every other one kept."""
        return Head({**self.values, **values})


def read_head(directory: Path) -> Head:
    """The head of the checkpoint in `directory`. Raises NotFound, or DamagedFile with the reason."""
    path = directory / HEAD
    values = load_weights_only(path)
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise DamagedFile(path, "does not hold a table of named values")
    if not isinstance(values.get("base"), str):
        raise DamagedFile(path, "does not name its base")
    try:
        describe(values)
    except RecursionError:
        raise DamagedFile(path, "nested too deeply") from None
    head = Head(values)
    temperature = files.as_finite(head.get("temperature"))
    if temperature is None or temperature <= 0:
        raise DamagedFile(path, f"its temperature {head.get('temperature')!r:.40} is not a number above 0")
    return head


def write_head(directory: Path, head: Head) -> None:
    """Replace `head.pt` and then its twin, each wholly or not at all.

    A kill between the two leaves a twin whose hash is that of the old file: seen to be old, and not believed.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(dict(head.values), buffer)
    data = buffer.getvalue()
    twin = describe(head.values) | {HEAD_SHA256: hashlib.sha256(data).hexdigest()}
    written = files.dump_json(twin)
    files.write_atomic(directory / HEAD, data)
    files.write_atomic(directory / TWIN, written)


def describe(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` as JSON: tensors by their shape and type under `tensors`, what JSON cannot say as text or null."""
    tensors: dict[str, Any] = {}
    plain = _plain(values, (), tensors)
    return {**plain, TENSORS: tensors}


def read_twin(directory: Path) -> dict[str, Any]:
    """What `head.json` says. Raises NotFound, or DamagedFile if it is unreadable or not that of the `head.pt` here."""
    path = directory / TWIN
    twin = files.read_json(path)
    if not isinstance(twin, dict):
        raise DamagedFile(path, "does not hold an object")
    if twin.get(HEAD_SHA256) != hashlib.sha256(files.read_bytes(directory / HEAD)).hexdigest():
        raise DamagedFile(path, f"was written with another {HEAD} than the one beside it")
    return twin


def _plain(value: Any, place: tuple[str, ...], tensors: dict[str, Any]) -> Any:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        tensors[".".join(place)] = {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
        return None
    match value:
        case Mapping():
            children = {str(key): (child, _plain(child, (*place, str(key)), tensors)) for key, child in value.items()}
            # A table of tensors only would be an empty shell here; its tensors are listed by name.
            return {key: plain for key, (child, plain) in children.items() if plain is not None or child is None}
        case set() | frozenset():
            return sorted(str(child) for child in value)
        case list() | tuple():
            return [_plain(child, (*place, str(number)), tensors) for number, child in enumerate(value)]
        case float() if not math.isfinite(value):
            return None
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)
