"""TOML that people write, with whatever their editor does to a file.

It stands apart from `kev.files`: themes and settings are read before the first frame, which waits for no records.
"""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from kev.errors import DamagedFile, NotFound, UnreadFile

MAX_TOML_BYTES = 1024 * 1024
UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_toml(path: Path, *, limit: int = MAX_TOML_BYTES) -> dict[str, Any]:
    """The values in `path`; a UTF-8 byte order mark is nothing to complain of. Raises NotFound or DamagedFile."""
    data = _read(path, limit).removeprefix(UTF8_BOM)
    if data.startswith(UTF16_BOMS) or b"\0" in data[:4]:
        raise DamagedFile(path, "UTF-16 text, or none; save it as UTF-8")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise DamagedFile(path, f"not UTF-8 (byte {error.start + 1:,}); save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DamagedFile(path, f"is no TOML: {error}") from None


def _read(path: Path, limit: int) -> bytes:
    try:
        # Non-blocking, so that a pipe under the name cannot hang who reads it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise DamagedFile(path, "not a regular file")
            data = stream.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DamagedFile(path, "not a regular file") from None
    except PermissionError:
        raise UnreadFile(path, "may not be read (permission denied)") from None
    except (OSError, ValueError) as error:
        raise UnreadFile(path, f"cannot be read ({error})") from None
    if len(data) > limit:
        raise DamagedFile(path, f"more than the {limit:,} bytes it may have")
    return data
