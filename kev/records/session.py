"""`runs/<session>-state.json`: our own schema, and the one public state file's, each as it is written.

`kev.session` turns either, or the budget of a round's spec, into one view; nothing else should read them.
"""

from typing import Any

from kev.records.base import Charge, StrictRecord


class SpendReading(StrictRecord):
    """One reading of the provider's meter."""

    at: str
    """ISO 8601 with an offset."""
    metered_usd: Charge
    """US dollars since the billing cycle began."""
    source: str | None = None
    """Where it comes from, such as `modal billing summary`."""
    billed_usd: Charge | None = None
    """What the provider says it will charge for the same cycle, credits taken off."""
    unseen_usd: Charge | None = None
    """At the first reading of a new cycle: the most that the old one came to after its last reading."""


class SessionStudy(StrictRecord):
    """One launched study."""

    bound_usd: Charge | None = None
    calls: dict[str, str | None] = {}
    status: str


class SessionRead(StrictRecord):
    """One launched batch of reads."""

    bound_usd: Charge | None = None
    status: str


class GatewayBudget(StrictRecord):
    """The AI gateway's own authorization, apart from the GPUs'."""

    authorization_usd: Charge | None = None
    spent_usd: Charge | None = None


class SessionState(StrictRecord):
    """The state of one session, in our schema."""

    session: str
    sample: bool = False
    """True where the session is made up to show what one looks like."""
    simulated: bool = False
    """True where no real money is spent; every figure is then shown as simulated."""
    authorization_usd: Charge
    reserve_usd: Charge | None = None
    """None means a tenth of the authorization."""
    baseline_usd: Charge
    """The meter when the session began."""
    cycle: str | None = None
    """Billing cycle of the baseline, `2026-10`."""
    readings: list[SpendReading] = []
    studies: dict[str, SessionStudy] = {}
    reads: dict[str, SessionRead] = {}
    """Each launched batch of reads, `<round>/<arm>` or `<round>/<arm>/<stage>`."""
    candidates: dict[str, Any] = {}
    decisions: list[str] = []
    """What a person must decide."""
    ai_gateway: GatewayBudget | None = None
    rounds: list[str] = []
    """Specs of the rounds that the session was opened for, relative to the checkout."""
    opened_at: str | None = None
    """ISO 8601, UTC."""
    closed_at: str | None = None
    """ISO 8601, UTC; from then on nothing is started."""
    closed_reason: str | None = None
    """Why it was closed with work unsettled, where it was."""


class NightAuthorization(StrictRecord):
    """Dollars a night may spend."""

    modal_usd: Charge
    ai_gateway_usd: Charge | None = None


class SpecBudget(StrictRecord):
    """The `budget` block of a round's spec; keys ending in `_bound` are what its parts were planned to cost."""

    hard_cap: Charge
    metered_start: Charge | None = None
    """The meter when the round was registered."""
    cycle: str | None = None
    """Billing cycle of that reading, `2026-10`."""


class NightState(StrictRecord):
    """The public state file: written by hand, with notes inside keys and statuses."""

    night: str
    branch: str | None = None
    start_local: str | None = None
    authorization: NightAuthorization
    modal_metered_usd: dict[str, Charge]
    """`baseline_night_start`, or a UTC time to the minute, to the meter."""
    ai_gateway_estimated_usd: dict[str, Charge] = {}
    """Directory of a read, sometimes with a remark, or `total`, to its estimate."""
    studies: dict[str, SessionStudy] = {}
    running_bounds_usd: dict[str, Charge] = {}
    candidates_unpublished: dict[str, dict[str, Any]] = {}
    pending_decisions: list[str] = []
