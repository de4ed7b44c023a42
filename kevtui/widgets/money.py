"""Spend against the authorization: what is gone, what is promised, what is left, and how old that knowledge is."""

from decimal import Decimal

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Money, Snapshot
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel

SOON_S = 2 * 3600
VERY_SOON_S = 30 * 60
NARROWEST_BAR = 10


class MoneyPanel(Panel):
    NAME = "2 Money"

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        if view.narrow:
            return Painting([Row.of(line, key) for key, line in narrow(snapshot.money, view)])
        return Painting([Row.of(line, key) for key, line in wide(snapshot.money, view)])


def wide(money: Money, view: View) -> list[tuple[str, Line]]:
    figures_pen = view.pen()
    _spend(figures_pen, money)
    pen = view.pen()
    bar = min(view.width * 45 // 100, view.width - figures_pen.column - 2)
    if _has_bar(money) and bar >= NARROWEST_BAR:
        _bar(pen, money, bar)
        pen.gap(2)
    _spend(pen, money)
    lines = [("spent", pen.line())]

    pen = view.pen()
    _headroom(pen, money)
    _burn(pen.gap(3), money)
    # A cut amount would be read as another one: what has no room has a line of its own, or none.
    later = [] if _gateway(pen.gap(3), money) else [("gateway", _gateway)]
    lines.append(("headroom", pen.line()))

    pen = view.pen()
    _provenance(pen, money)
    later += [] if _metered(pen.gap(3), money) else [("metered", _metered)]
    lines.append(("reading", pen.line()))
    for key, add in later:
        pen = view.pen()
        if len(lines) < view.height and add(pen, money):
            lines.append((key, pen.line()))
    return lines


def _gateway(pen: Pen, money: Money) -> bool:
    """Whether there was room for it."""
    if money.gateway_spent is None and money.gateway_authorization is None:
        return True
    spent, authorized = figures.money(money.gateway_spent), figures.money(money.gateway_authorization)
    if not pen.fits("AI gateway ", spent, " of ", authorized):
        return False
    _labelled(pen, "AI gateway", spent)
    pen.add(" of ", Role.DIM).add(authorized)
    return True


def _metered(pen: Pen, money: Money) -> bool:
    """Whether there was room for it."""
    if money.metered is None or money.baseline is None:
        return True
    text = f"metered {figures.money(money.metered)} − baseline {figures.money(money.baseline)}"
    if not pen.fits(text):
        return False
    pen.add(text, Role.DIM)
    return True


def _spend(pen: Pen, money: Money) -> None:
    _labelled(pen, "spent", figures.money(money.spent), Role.STRONG)
    pen.add(" · ", Role.DIM)
    _committed(pen, money)
    pen.add(" · ", Role.DIM)
    _labelled(pen, "reserve", figures.money(money.reserve))
    pen.add(" · ", Role.DIM)
    _labelled(pen, "of", figures.money(money.authorization))


def narrow(money: Money, view: View) -> list[tuple[str, Line]]:
    pen = view.pen().gap()
    pen.add(figures.dollars(money.spent), Role.STRONG).add(" spent ", Role.DIM)
    if _has_bar(money):
        _bar(pen, money, max(6, view.width - 56))
    pen.add(" of ", Role.DIM).add(figures.dollars(money.authorization)).gap(2)
    _committed(pen, money, short=True)
    pen.gap(2)
    role = Role.BAD if _overdrawn(money) else Role.STRONG
    pen.add(figures.dollars(money.headroom), role).add(" left", Role.DIM)
    lines = [("spent", pen.line())]
    if view.height > 1:
        pen = view.pen().gap()
        _burn(pen, money)
        _provenance(pen.gap(2), money)
        lines.append(("reading", pen.line()))
    return lines


def parts(money: Money, width: int) -> tuple[int, int, int, int]:
    """`width` cells as (spent, committed, free, reserve); an amount above zero has at least one cell."""
    total = money.authorization
    if total is None or total <= 0 or width <= 0:
        return 0, 0, max(0, width), 0

    def cells(amount: Decimal | None) -> int:
        if amount is None or amount <= 0:
            return 0
        return max(1, round(width * min(Decimal(1), amount / total)))

    spent = min(width, cells(money.spent))
    committed = min(width - spent, cells(money.committed))
    reserve = min(width - spent - committed, cells(money.reserve))
    return spent, committed, width - spent - committed - reserve, reserve


def _has_bar(money: Money) -> bool:
    """A bar without the money spent would look like none spent."""
    return money.authorization is not None and money.spent is not None


def _bar(pen: Pen, money: Money, width: int) -> None:
    spent, committed, free, reserve = parts(money, min(width, pen.left))
    pen.add(glyphs.SPENT * spent, Role.SPENT).add(glyphs.COMMITTED * committed, Role.COMMITTED)
    pen.add(glyphs.FREE * free, Role.FREE).add(glyphs.RESERVE * reserve, Role.RESERVE)


def _labelled(pen: Pen, label: str, value: str, role: Role = Role.TEXT) -> None:
    pen.add(f"{label} ", Role.DIM).add(value, role)


def _committed(pen: Pen, money: Money, *, short: bool = False) -> None:
    amount = figures.dollars(money.committed) if short else figures.money(money.committed)
    if money.committed is None:
        pen.add("committed ", Role.DIM).add(figures.MISSING)
        return
    if money.committed_complete:
        pen.add("≤ " if short else "committed ≤ ", Role.DIM).add(amount)
        if short:
            pen.add(" committed", Role.DIM)
        elif money.committed_note:
            pen.add(f", {money.committed_note}", Role.DIM)
        return
    # A ledger that cannot be read may cost money too, so the sum is a floor and no longer a bound.
    pen.add("committed ", Role.DIM).add(f"≥ {amount}", Role.WARN)
    if not short:
        pen.add(f" incomplete: {money.committed_note or 'a bound is not known'}", Role.WARN)


def _overdrawn(money: Money) -> bool:
    return money.headroom is not None and money.headroom <= 0


def _headroom(pen: Pen, money: Money) -> None:
    role = Role.BAD if _overdrawn(money) else Role.STRONG
    _labelled(pen, "headroom", figures.money(money.headroom), role)
    if not money.committed_complete:
        pen.add(" at most", Role.WARN)


def _burn(pen: Pen, money: Money) -> None:
    if money.burn_per_hour is None:
        _labelled(pen, "burn", figures.MISSING)
        return
    _labelled(pen, "burn", f"{figures.money(money.burn_per_hour)}/h")
    if money.exhausted_in_s is not None:
        role = Role.TEXT
        if money.exhausted_in_s < SOON_S:
            role = Role.BAD if money.exhausted_in_s < VERY_SOON_S else Role.WARN
        pen.add(", exhausted in ", Role.DIM).add(figures.age(money.exhausted_in_s), role)
        if money.exhaustion_note:
            pen.add(f" {money.exhaustion_note}", Role.DIM)


def _provenance(pen: Pen, money: Money) -> None:
    if money.reading_age_s is None:
        pen.add("no reading" if money.reading_at is None else f"reading of {figures.clock(money.reading_at)}", Role.DIM)
        if money.reading_stale:
            pen.add(", ahead of this clock: nothing is launched on it", Role.BAD)
    else:
        pen.add("reading ", Role.DIM)
        pen.add(f"{figures.age(money.reading_age_s)} old", Role.BAD if money.reading_stale else Role.TEXT)
        if money.reading_stale:
            pen.add(", too old to launch on", Role.BAD)
    if money.source:
        pen.add(" from ", Role.DIM).add(money.source, Role.DIM)
    if money.simulated:
        pen.gap(2).add("simulated", Role.WARN)
