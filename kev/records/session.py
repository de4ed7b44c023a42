"""`runs/<session>-state.json`: our own schema, and the one public state file's, each as it is written.

`kev.session` turns either into one view; nothing else should read them.
"""

from typing import Any

from kev.records.base import Money, StrictRecord


class SpendReading(StrictRecord):
    """One reading of the provider's meter."""

    at: str
    """ISO 8601 with an offset."""
    metered_usd: Money
    """US dollars since the billing cycle began."""
    source: str | None = None
    """Where it comes from, such as `modal billing summary`."""


class SessionStudy(StrictRecord):
    """One launched study."""

    bound_usd: Money | None = None
    calls: dict[str, str | None] = {}
    status: str


class GatewayBudget(StrictRecord):
    """The AI gateway's own authorization, apart from the GPUs'."""

    authorization_usd: Money | None = None
    spent_usd: Money | None = None


class SessionState(StrictRecord):
    """The state of one session, in our schema."""

    session: str
    simulated: bool = False
    """True where no real money is spent; every figure is then shown as simulated."""
    authorization_usd: Money
    reserve_usd: Money | None = None
    """None means a tenth of the authorization."""
    baseline_usd: Money
    """The meter when the session began."""
    cycle: str | None = None
    """Billing cycle of the baseline, `2026-10`."""
    readings: list[SpendReading] = []
    studies: dict[str, SessionStudy] = {}
    reads: dict[str, Any] = {}
    """Directory of each read to what is known of it."""
    candidates: dict[str, Any] = {}
    decisions: list[str] = []
    """What a person must decide."""
    ai_gateway: GatewayBudget | None = None


class NightAuthorization(StrictRecord):
    """Dollars a night may spend."""

    modal_usd: Money
    ai_gateway_usd: Money | None = None


class NightState(StrictRecord):
    """The public state file: written by hand, with notes inside keys and statuses."""

    night: str
    branch: str | None = None
    start_local: str | None = None
    authorization: NightAuthorization
    modal_metered_usd: dict[str, Money]
    """`baseline_night_start`, or a UTC time to the minute, to the meter."""
    ai_gateway_estimated_usd: dict[str, Money] = {}
    """Directory of a read, sometimes with a remark, or `total`, to its estimate."""
    studies: dict[str, SessionStudy] = {}
    running_bounds_usd: dict[str, Money] = {}
    candidates_unpublished: dict[str, dict[str, Any]] = {}
    pending_decisions: list[str] = []
