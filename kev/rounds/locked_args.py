"""The further arguments of a locked test, as a spec writes them for a size: `["--timeout", "14400"]`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kev import budget
from kev.errors import UsageError
from kev.spelling import nearest

TIMEOUT = 3600
TRANSFER = "evals/v4/transfer-v4"
"""The transfer suite of a locked test whose spec names none."""

MEMORY_MB = 49_152
MIN_MEMORY_MB = 32_768
"""What the function has, and the least that it needs, in MiB."""

MAX_MEMORY_MB = budget.TRIAL.memory[1]
"""What the bound of a read counts: more than that it would not cover."""

KNOWN = ("--timeout", "--memory-mb", "--transfer")


@dataclass(frozen=True, slots=True)
class LockedArguments:
    """What a locked test is to have."""

    timeout: int = TIMEOUT
    memory_mb: int | None = None
    """None for what its function has."""
    transfer: str = TRANSFER


def parse_locked_arguments(words: Sequence[str]) -> LockedArguments:
    """What `words` say, each `--key value` or `--key=value`. Raises UsageError for what would have no effect."""
    found = LockedArguments()
    rest = list(words)
    while rest:
        key, has_value, value = rest.pop(0).partition("=")
        if key not in KNOWN:
            raise UsageError(f"{key!r:.60} is no argument of a locked test here{nearest(key, KNOWN)}")
        if not has_value:
            if not rest:
                raise UsageError(f"{key} is without its value")
            value = rest.pop(0)
        if key == "--transfer":
            found = replace(found, transfer=value)
        elif key == "--timeout":
            found = replace(found, timeout=_number(key, value, 1, budget.MAX_TIMEOUT_FULL_WEIGHT))
        else:
            found = replace(found, memory_mb=check_memory(_number(key, value, 0, 10**9)))
    return found


def check_memory(mebibytes: int) -> int | None:
    """The memory to ask the provider for, None for what the function has. Raises UsageError outside of its limits."""
    if not MIN_MEMORY_MB <= mebibytes <= MAX_MEMORY_MB:
        raise UsageError(f"--memory-mb {mebibytes}: write {MIN_MEMORY_MB} to {MAX_MEMORY_MB}; a locked test needs the "
                         "one, and is admitted at what the other costs")  # fmt: skip
    return None if mebibytes == MEMORY_MB else mebibytes


def _number(key: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise UsageError(f"{key} {value!r:.40}: write a whole number from {least} to {most}")
    return int(value)
