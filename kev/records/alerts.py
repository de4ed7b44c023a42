"""`runs/<session>-alerts.json`: the alerts that stand, since when, and who has acknowledged which.

It is written by the dashboard in control and by whoever acknowledges without a screen, and replaced whole.
"""

from pydantic import Field

from kev.records.base import StrictRecord, UnixSeconds


class Acknowledgement(StrictRecord):
    """Good until the condition is another one or graver; then the alert is told again."""

    at: UnixSeconds
    who: str
    reason: str = ""
    severity: str
    condition: str = ""


class StandingAlert(StrictRecord):
    """One alert that was raised and is not over."""

    severity: str
    condition: str = ""
    text: str = ""
    raised_at: UnixSeconds
    acknowledged: Acknowledgement | None = None


class StandingAlerts(StrictRecord):
    """All of one session, by the alert's id."""

    alerts: dict[str, StandingAlert] = Field(default_factory=dict)
