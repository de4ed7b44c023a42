"""The flags of a benchmark job: read before it is launched, and again in its container."""

import shlex
from dataclasses import dataclass
from typing import Any

from kev.errors import UsageError
from kev.records.suite import SPLITS


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the flags of a job ask for."""

    split: str = "development"
    allow_test: bool = False
    rotations: int = 1
    date_facts: bool = False


def parse_flags(flags: str) -> ReadOptions:
    """The flags of a job. Raises UsageError for one that is not known, or that has no meaning here."""
    found: dict[str, Any] = {}
    words = [part for word in shlex.split(flags) for part in word.split("=", 1)]
    while words:
        flag = words.pop(0)
        match flag:
            case "--allow-test":
                found |= {"allow_test": True, "split": "test"}
            case "--date_facts":
                found["date_facts"] = True
            case "--split" | "--rotations":
                if not words:
                    raise UsageError(f"flag {flag}: needs a value")
                found.setdefault(flag[2:], words.pop(0))
            case _:
                raise UsageError(f"flag {flag!r:.60}: a read knows --split, --allow-test, --rotations and --date_facts")
    if found.get("split", "development") not in SPLITS or (found.get("split") == "test" and "allow_test" not in found):
        raise UsageError(f"--split {found['split']!r:.60}: write calibration, development or train, or --allow-test")
    rotations = str(found.get("rotations", 1))
    if not rotations.isdecimal() or int(rotations) < 1:
        raise UsageError(f"--rotations {rotations!r:.60}: write a whole number from 1 up")
    return ReadOptions(**{**found, "rotations": int(rotations)})
