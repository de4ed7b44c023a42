"""TOML that people write, with whatever their editor does to a file."""

import tomllib
from pathlib import Path
from typing import Any

from kev.errors import DamagedFile
from kev.files.json_values import UTF8_BOM, UTF16_BOMS
from kev.files.reading import read_bytes

MAX_TOML_BYTES = 1024 * 1024


def read_toml(path: Path, *, limit: int = MAX_TOML_BYTES) -> dict[str, Any]:
    """The values in `path`; a UTF-8 byte order mark is nothing to complain of. Raises NotFound or DamagedFile."""
    data = read_bytes(path, limit=limit).removeprefix(UTF8_BOM)
    if data.startswith(UTF16_BOMS) or b"\0" in data[:4]:
        raise DamagedFile(path, "UTF-16 text, or none; save it as UTF-8")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise DamagedFile(path, f"not UTF-8 (byte {error.start + 1:,}); save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DamagedFile(path, f"is no TOML: {error}") from None
