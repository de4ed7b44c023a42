"""`runs/<session>-control.json`: whether new work may be started, and who said so."""

from kev.records.base import StrictRecord, UnixSeconds

MODES = ("running", "soft", "hard")


class Control(StrictRecord):
    """What the engine is allowed to do now."""

    mode: str
    """`running`; `soft`: start nothing new, go on with what runs; `hard`: start, continue and fetch nothing."""
    who: str = ""
    at: UnixSeconds = 0
    reason: str = ""
