"""Whether a process is there; apart, so that who only looks loads nothing for it."""

import os


def is_process(number: int) -> bool:
    """Whether a process of that number is there, on this machine."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return number < 2**31
    return True
