"""Reading what torch saved, weights only: a file from outside is data, and nothing in it is ever run.

torch decides what may be loaded; this module says in one line why a file may not. What is in the way is found by
looking at the pickle's opcodes, which executes nothing.
"""

import io
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, UsageError
from kev.text import shorten, visible

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
OLD_FORMAT = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The pickled number that torch began its files with before it wrote archives."""

MAX_BYTES = 1024**3
"""The largest file that is read here; weights of a backbone lie in safetensors, not in these files."""

HARMLESS_MODULES = ("torch", "collections")
"""Modules whose names weights-only files are full of; torch itself decides about each name in them."""

STATE_MODULES = ("numpy", "_codecs")
"""Modules that a saved numpy array or random state names."""


def load_weights_only(path: Path, *, limit: int = MAX_BYTES) -> Any:
    """What `path` holds: tensors, on the CPU, and plain values.

    Raises NotFound; DamagedFile with the reason for everything that is not a whole weights-only file; UsageError
    where torch is not installed.
    """
    data = files.read_bytes(path, limit=limit)
    reason = _envelope_fault(data, limit)
    if reason:
        raise DamagedFile(path, reason)
    try:
        import torch
    except ImportError:
        raise UsageError("reading a checkpoint needs torch: install the extra, `pip install 'kevtui[train]'`") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch describes unusual files in warnings before it refuses them
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # damaged archives raise almost anything
        raise DamagedFile(path, _content_fault(data, error)) from None


def _envelope_fault(data: bytes, limit: int) -> str | None:
    if not data:
        return "empty"
    if data.startswith(files.LFS_POINTER):
        return files.LFS_REASON
    if not data.startswith(ZIP):
        return _foreign(data)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError):
        return f"cut short or damaged: its {len(data):,} bytes have no table of contents at their end"
    if _pickle_name(archive) is None:
        return "an archive, but not one that torch wrote"
    if unpacked > limit:
        return f"would unpack to {unpacked:,} bytes, more than the {limit:,} that are read"
    return None


def _foreign(data: bytes) -> str:
    if data.startswith(OLD_FORMAT):
        return "in the format of torch before 1.6, which is not read; load it where it was made and save it again"
    if data.startswith(PICKLE) or _is_pickle(data):
        names = shorten(", ".join(dict.fromkeys(global_names(data))), 120)
        return f"a bare pickle, not a file that torch wrote; loading it would call {names or 'whatever it names'}"
    return f"not a file that torch wrote; it begins with {shorten(visible(repr(data[:16])), 60)}"


def _content_fault(data: bytes, error: Exception) -> str:
    archive = zipfile.ZipFile(io.BytesIO(data))
    try:
        pickled = archive.read(_pickle_name(archive) or "")
    except Exception:  # a damaged member; as many kinds of error as the archive has parts
        return "damaged: its contents do not unpack"
    names = list(dict.fromkeys(global_names(pickled)))
    strangers = [name for name in names if name.partition(".")[0] not in HARMLESS_MODULES]
    shown = shorten(", ".join(strangers), 120)
    if strangers and all(name.partition(".")[0] in STATE_MODULES for name in strangers):
        return f"holds numpy objects ({shown}), which are not read; save them as tensors or plain values"
    if strangers:
        return f"loading it would call {shown}; only tensors and plain values are read"
    refused = re.search(r"(?:GLOBAL|class) ([\w.]+)", str(error))
    if refused:
        return f"loading it would call {visible(refused[1])}; only tensors and plain values are read"
    return f"damaged: {shorten(visible(str(error).strip().partition(chr(10))[0]) or type(error).__name__, 120)}"


def _pickle_name(archive: zipfile.ZipFile) -> str | None:
    return next((name for name in archive.namelist() if name.count("/") == 1 and name.endswith("/data.pkl")), None)


def _is_pickle(data: bytes) -> bool:
    try:
        return any(opcode.name == "STOP" for opcode, _, _ in pickletools.genops(data))
    except Exception:  # text, mostly
        return False


def global_names(pickled: bytes) -> Iterator[str]:
    """The dotted names of everything that a pickle would import, in order; as far as it can be followed."""
    memo: dict[int, str] = {}
    strings: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            match opcode.name:
                case "GLOBAL" | "INST":
                    yield visible(str(argument).replace(" ", "."))
                case "STACK_GLOBAL":
                    yield visible(".".join(strings[-2:]))
                case "MEMOIZE" if strings:
                    memo[len(memo)] = strings[-1]
                case "BINPUT" | "LONG_BINPUT" | "PUT" if strings and isinstance(argument, int):
                    memo[argument] = strings[-1]
                case "BINGET" | "LONG_BINGET" | "GET" if isinstance(argument, int):
                    strings.append(memo.get(argument, "?"))
                case _ if isinstance(argument, str):
                    strings.append(argument)
    except Exception:  # an end in the middle of an opcode, an argument that is none: what came before still counts
        return
