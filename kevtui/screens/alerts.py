"""From a key to an acknowledgement: which alert is meant, who is told, and what the screen shows after it."""

from typing import TYPE_CHECKING

from kev.text import shorten, visible
from kevtui.observe.snapshot import Alert, Snapshot
from kevtui.screens import arrange as places
from kevtui.widgets.attention import AttentionPanel

if TYPE_CHECKING:
    from kevtui.screens.watch import WatchScreen

LONGEST = 60
HERE = ", in this dashboard only"


def acknowledge(screen: "WatchScreen") -> None:
    """Acknowledge the alert under the cursor; from any other panel, go to the alerts first."""
    panel = screen.query_one(AttentionPanel)
    if screen.panel is not panel:
        if panel.row_keys:
            screen.action_jump(places.ATTENTION)
        else:
            screen.notify("Nothing needs attention", timeout=3)
        return
    meant = [alert for alert in _open(screen.snapshot) if alert.id == panel.alert_id]
    _carry_out(screen, meant)


def acknowledge_all(screen: "WatchScreen") -> None:
    """Acknowledge every alert there is."""
    _carry_out(screen, _open(screen.snapshot))


def withdraw(screen: "WatchScreen") -> None:
    """Show every alert again."""
    if screen.desk is None:
        return
    known = sum(alert.acknowledged for alert in screen.snapshot.alerts) if screen.snapshot else 0
    if not known:
        screen.notify("Nothing is acknowledged", timeout=3)
        return
    _show(screen, screen.desk.withdraw(screen.actions.hands))
    screen.notify(f"{_counted(known)} shown again{_where(screen)}", timeout=3)


def _carry_out(screen: "WatchScreen", alerts: list[Alert]) -> None:
    if screen.desk is None or not alerts:
        screen.notify("No alert is there to be acknowledged", timeout=3)
        return
    _show(screen, screen.desk.acknowledge(alerts, screen.actions.hands))
    what = shorten(visible(alerts[0].id), LONGEST) if len(alerts) == 1 else _counted(len(alerts))
    screen.notify(f"Acknowledged {what}{_where(screen)}", markup=False, timeout=3)


def _show(screen: "WatchScreen", snapshot: Snapshot | None) -> None:
    if snapshot is None:
        return
    screen.show(snapshot)
    panel = screen.query_one(AttentionPanel)
    if panel.has_nothing(snapshot):
        if screen.zoomed == places.ATTENTION:
            screen.zoom(None)
        screen.studies.focus()


def _open(snapshot: Snapshot | None) -> list[Alert]:
    return [alert for alert in snapshot.alerts if not alert.acknowledged] if snapshot else []


def _counted(number: int) -> str:
    return f"{number} alert{'s' if number != 1 else ''}"


def _where(screen: "WatchScreen") -> str:
    return "" if screen.actions.hands is not None else HERE
