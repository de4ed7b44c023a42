"""`runs/<name>.read.json`: one read that was launched, from before its spawn on.

A name is used once: the file is created exclusively, and stays. A read whose launcher died is found again by its call.
"""

from kev.records.base import Charge, Number, StrictRecord, UnixSeconds


class ReadRecord(StrictRecord):
    """A launched read: of one partition, or of the locked tests."""

    name: str
    kind: str
    """`benchmark` or `locked`."""
    run: str
    """The checkpoint that is read."""
    suites: list[str]
    flags: str = ""
    gpu: str
    timeout: Number
    """Seconds."""
    bound_usd: Charge | None = None
    at: UnixSeconds
    """When the entry was made, before its spawn."""
    call: str | None = None
    """None while the spawn is under way, or was interrupted."""

    def is_same_read(self, other: "ReadRecord") -> bool:
        """Whether both ask for the same answers; card and time may differ."""
        return (self.kind, self.run, self.suites, self.flags) == (other.kind, other.run, other.suites, other.flags)
