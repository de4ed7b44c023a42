"""Small model directories, made by hand: real safetensors files, and a configuration nobody has to load."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy

TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8"}


def safetensors(tensors: Mapping[str, Any], dtype: str = "F32") -> bytes:
    """The bytes of a safetensors file."""
    header: dict[str, Any] = {}
    data = b""
    for name, values in tensors.items():
        array = numpy.asarray(values, dtype="<f4")
        if dtype == "BF16":
            bits = array.view("<u4")
            piece = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
        else:
            piece = array.astype(TYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    said = json.dumps(header).encode()
    return struct.pack("<Q", len(said)) + said + data


def tensors(seed: int = 0, *, rows: int = 40, names: int = 3) -> dict[str, Any]:
    """Matrices and a norm, drawn from `seed`."""
    draw = numpy.random.default_rng(seed)
    found: dict[str, Any] = {f"model.layers.{n}.weight": draw.normal(0, 0.1, (rows, 20)) for n in range(names)}
    return found | {"model.norm.weight": numpy.ones(20)}


def trained(base: Mapping[str, Any], seed: int, by: float = 0.02) -> dict[str, Any]:
    """`base` after a training: every value moved a little."""
    draw = numpy.random.default_rng(seed)
    return {name: values + draw.normal(0, by, values.shape) for name, values in base.items()}


def model(directory: Path, weights: Mapping[str, Any], *, dtype: str = "F32", **more: bytes) -> Path:
    """A directory with these weights; `more` are further files, with dots written as two underscores."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text('{"model_type": "made-up"}')
    (directory / "model.safetensors").write_bytes(safetensors(weights, dtype))
    for name, content in more.items():
        (directory / name.replace("__", ".")).write_bytes(content)
    return directory
