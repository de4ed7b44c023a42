"""What the exit status of `kevtui` says; scripts may rely on it."""

from typing import Final

FINE: Final = 0
"""Shown. A reader that closed the pipe early has what it wanted, and ctrl-C is how `--plain` ends."""

OUTPUT_LOST: Final = 1
"""What was to be shown could not be written: a full disk, a closed output. What was written is not to be trusted."""

USAGE: Final = 2
"""The command line asks for something that cannot be meant."""

NOTHING: Final = 3
"""Nothing to show: no such session, or its files hold nothing that can be believed."""

FINDINGS: Final = 4
"""Shown, and with `--strict`: at least one file cannot be believed. `doctor`: at least one check is bad."""

REFUSED: Final = 5
"""`act`: a precondition is not met, a rule forbids it, or nothing may be changed from here. Nothing was started."""

UNCONFIRMED: Final = 6
"""`act`: it spends or cannot be undone, and `--yes` or the right `--name` is missing. Nothing was started."""

FAILED: Final = 7
"""`act`: the engine's command was started and failed, or was interrupted."""

INTERRUPTED: Final = 130
"""Ctrl-C before `--once` or `--json` had anything to show."""

MEANINGS: Final = (
    (FINE, "shown, or done"),
    (OUTPUT_LOST, "the output could not be written"),
    (USAGE, "the command line cannot be meant"),
    (NOTHING, "nothing to show"),
    (FINDINGS, "with --strict: a file cannot be believed; doctor: a check is bad"),
    (REFUSED, "act: refused, nothing was started"),
    (UNCONFIRMED, "act: not confirmed, nothing was started"),
    (FAILED, "act: started, and failed"),
    (INTERRUPTED, "interrupted before anything was shown"),
)
