"""`runs/ledger.jsonl`: everything that was asked of the provider, one event a line, only ever appended to.

The first line is `opened`. What a unit may cost is reserved by `wanted`; an `intent` is on disk before its spawn:

    wanted      these units were admitted, each with its order
    extended    a person allowed one more attempt, beyond the bound of its admission
    intent      an attempt at the unit is about to be spawned
    call        the attempt has this call: its spawn answered, or the call was found (`text` says how)
    withdrawn   the provider refused the spawn and nothing was started; the attempt does not count
    abandoned   nothing of the attempt is alive at the provider; it counts
    ended       the call ended, with this outcome
    settled     nothing more is spent on the unit
    cancel      someone asked for the unit to be ended; it still counts until it is seen to have ended
"""

from typing import Annotated, Any

from pydantic import Field

from kev.records.base import Charge, StrictRecord, UnixSeconds

EVENTS = frozenset(
    {"opened", "wanted", "extended", "intent", "call", "withdrawn", "abandoned", "ended", "settled", "cancel"}
)
KINDS = frozenset({"trial", "read", "locked", "rescore", "blend", "mirror", "agent", "sources"})


class Order(StrictRecord):
    """What a unit is, in full: enough to spawn it, to continue it and to bring home what it made."""

    kind: str
    """One of KINDS."""
    name: str
    """The study, or the directory of a read under runs/."""
    label: str | None = None
    """Of a trial, `trial-0`."""
    function: str
    """The remote function."""
    payload: dict[str, Any]
    """Its argument, without what differs from attempt to attempt."""
    gpu: str | None = None
    timeout: Annotated[int, Field(gt=0)]
    """Seconds, per attempt: nothing runs without an end."""
    memory_mb: int | None = None
    """The most memory of a container, in MiB, where that is another than its function has."""
    attempts: int = 1
    """How many there may be in all."""
    attempt_usd: Charge
    """The most that one attempt can cost."""
    remote: str
    """Directory on the runs volume that it writes; of a blend the study's, in which each share has its own."""
    local: str
    """Where that comes to, relative to the root."""
    lease: str | None = None
    """`<study>/<NN>-<label>` of a trial that is held by a lease."""
    once: str | None = None
    """What may be read a single time, ever: checkpoint, suite and split of a test."""
    study_usd: Charge | None = None
    """The admission bound of the whole study, as its spawn record has it."""
    app: str | None = None
    gateway_usd: Charge | None = None
    """What it may spend on the AI gateway besides, which has a cap of its own."""
    session: str | None = None
    round: int | None = None
    arm: str | None = None
    stage: str | None = None


class LedgerEvent(StrictRecord):
    """One line."""

    event: str
    at: UnixSeconds
    unit: str = ""
    nonce: str | None = None
    orders: dict[str, Order] | None = None
    """Of `wanted`: unit to order, all in one line, so that all of them are admitted or none."""
    call: str | None = None
    outcome: str | None = None
    text: str | None = None
    who: str | None = None
