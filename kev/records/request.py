"""`runs/.actions/`: what somebody agreed to, on disk before it is done, and what came of it."""

from typing import Any

from kev.records.base import StrictRecord, UnixSeconds


class ActionRequest(StrictRecord):
    """`<id>.json`, created once: an accepted action."""

    id: str
    verb: str
    target: str
    state: str
    """Digest of what it rests on."""
    command: list[str]
    """What the Python interpreter is given."""
    environment: dict[str, str] = {}
    root: str
    at: UnixSeconds
    who: str
    host: str
    process: int
    """Of who accepted it."""
    reason: str = ""
    before: str = ""
    after: str = ""
    bound_usd: str | None = None
    session: str | None = None
    state_file: str | None = None
    """Whose journal it is told to."""
    preview: dict[str, Any] = {}


class ActionRun(StrictRecord):
    """`<id>.run.json`: the process that does it."""

    process: int
    host: str
    at: UnixSeconds


class ActionResult(StrictRecord):
    """`<id>.result.json`: how it ended. Without one, and with nobody doing it, it was interrupted."""

    code: int
    """Exit status of the engine's command."""
    at: UnixSeconds
    text: str = ""
    """Its last word."""
