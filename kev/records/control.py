"""`runs/<session>-control.json`: whether new work may be started, and who said so."""

from kev.records.base import StrictRecord, UnixSeconds

MODES = ("running", "soft", "hard")
ENGINE = "the engine"
"""Who paused, where no person did."""


class Control(StrictRecord):
    """What the engine is allowed to do now."""

    mode: str
    """`running`; `soft`: start nothing new, go on with what runs; `hard`: start, continue and fetch nothing."""
    who: str = ""
    at: UnixSeconds = 0
    reason: str = ""
    spend_limit: bool = False
    """The provider starts nothing at all for this workspace: what was cut off is not continued either."""

    @property
    def by_engine(self) -> bool:
        """Whether the engine paused, so that there may be nobody who waits for an end of it."""
        return self.mode != "running" and self.who == ENGINE
