"""What a panel leaves out by a registered file: ids (of records or groups), sources and tasks.

An object of lists under these names, in which other keys are for people, or one list that is held against all three.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile

KEYS = ("ids", "sources", "tasks")


@dataclass(frozen=True)
class Exclusions:
    """The content of an exclude file."""

    ids: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.ids or self.sources or self.tasks)


def parse_exclusions(path: Path, data: bytes) -> Exclusions:
    """The exclusions in the bytes of `path`. Raises DamagedFile, naming the first entry that is no text."""
    try:
        value = files.parse_json_file(data)
    except ValueError as error:
        raise DamagedFile(path, str(error)) from None
    if isinstance(value, list):
        return Exclusions(*[_names(path, "", value)] * 3)
    if not isinstance(value, dict):
        raise DamagedFile(path, "holds neither a list of names nor lists under ids, sources and tasks")
    return Exclusions(*(_names(path, key, value.get(key)) for key in KEYS))


def _names(path: Path, key: str, value: Any) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        raise DamagedFile(path, f"{key}: should be a list of names")
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise DamagedFile(path, f"{key}[{index}]: should be text, not {name!r:.40}: a number matches no id")
    return frozenset(value)
