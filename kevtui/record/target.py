"""Which bundle a name means. Apart from opening one, which loads what no session that is watched needs."""

from pathlib import Path
from typing import Final

from kev import files
from kev.errors import DamagedFile, NotFound

SIGNATURE: Final = b"PK\x03\x04"


def bundle_at(argument: str, *, root: Path | None, cwd: Path) -> Path | None:
    """The bundle that `argument` names as a path; None where it names something else."""
    if not argument or "\0" in argument:
        return None
    for place in [root / argument, cwd / argument] if root is not None else [cwd / argument]:
        try:
            if place.is_file() and files.read_start(place, len(SIGNATURE)) == SIGNATURE:
                return place.absolute()
        except (OSError, ValueError, DamagedFile, NotFound):
            continue
    return None
