"""Who holds each trial: the age of the heartbeat, whose it is, and how far the two clocks are apart."""

from collections.abc import Callable

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Lease, Section, Snapshot
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import LEASE_ROLE

_STATE, _AGE, _NONCE, _SKEW = 14, 7, 8, 6


class LeasesPanel(Panel):
    NAME = "7 Leases"
    SECTIONS = (Section.LEASES,)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        name = max((len(lease.trial) for lease in snapshot.leases), default=0)
        name = min(max(name, 8), max(8, view.width // 3))
        rows = [Row(lease.trial, _painter(lease, name, view)) for lease in snapshot.leases]
        return Painting(rows, self._head(name, view))

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return not snapshot.leases

    def head(self, view: View) -> tuple[Line, ...]:
        return self._head(max(8, view.width // 3), view)

    def _head(self, name: int, view: View) -> tuple[Line, ...]:
        pen = view.pen().add("trial", Role.DIM, width=name).gap(2).add("state", Role.DIM, width=_STATE)
        pen.add("beat", Role.DIM, width=_AGE, right=True)
        if _has_stamp(name, view):
            pen.gap().add("stamp", Role.DIM, width=_AGE, right=True)
        pen.gap(2)
        return (pen.add("nonce", Role.DIM, width=_NONCE).add("skew", Role.DIM, width=_SKEW, right=True).line(),)


def _painter(lease: Lease, name: int, view: View) -> Callable[[], Line]:
    def paint() -> Line:
        role = LEASE_ROLE[lease.state]
        pen = view.pen().add(lease.trial, width=name).gap(2)
        pen.add(f"{glyphs.LEASE[lease.state]} {lease.state}", role, width=_STATE)
        pen.add(figures.age(lease.unchanged_s), width=_AGE, right=True)
        if _has_stamp(name, view):
            pen.gap().add(figures.age(lease.stamp_age_s), Role.DIM, width=_AGE, right=True)
        pen.gap(2)
        match lease.nonce_matches:
            case True:
                pen.add("ok", Role.GOOD, width=_NONCE)
            case False:
                pen.add("FOREIGN", Role.BAD, width=_NONCE)
            case None:
                pen.add(figures.MISSING, Role.DIM, width=_NONCE)
        return pen.add(_skew(lease.skew_s), Role.DIM, width=_SKEW, right=True).line()

    return paint


def _has_stamp(name: int, view: View) -> bool:
    """Whether there is room for what the details tell too, without cutting the columns to its right."""
    return view.width >= name + 2 + _STATE + _AGE + 1 + _AGE + 2 + _NONCE + _SKEW


def _skew(seconds: float | None) -> str:
    return figures.MISSING if seconds is None else f"{seconds:+.0f} s".replace("-", "−")
