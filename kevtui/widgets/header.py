"""The strip at the top: what is watched, how, and whether what is shown can be believed to be fresh."""

from datetime import datetime

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Replay, Severity, Snapshot, Watcher, WatcherState
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel
from kevtui.widgets.state import counts

READ_ONLY, CONTROL = "READ-ONLY", "CONTROL"

_WATCHER_ROLE = {
    WatcherState.ALIVE: Role.GOOD,
    WatcherState.LATE: Role.WARN,
    WatcherState.DOWN: Role.BAD,
    WatcherState.FINISHED: Role.GOOD,
    WatcherState.NONE: Role.DIM,
}
_GAP = 3


class Header(Panel, can_focus=False):
    """One line, and in the phone form a second one with how many trials are in which state."""

    def __init__(self, ink: Ink, *, id: str, title: str) -> None:  # noqa: A002
        super().__init__(ink, id=id)
        self._title_text = title
        self._moved_at: datetime | None = None
        self._mode: tuple[str, Role] = (READ_ONLY, Role.ACCENT)
        self._silence = ""

    def tell_mode(self, text: str, role: Role = Role.ACCENT) -> None:
        """Say who may act from here."""
        if (text, role) != self._mode:
            self._mode = (text, role)
            self.repaint()

    def tell_silence(self, text: str) -> None:
        """Say that nothing more is heard of what is shown; "" says that something is."""
        if text != self._silence:
            self._silence = text
            self.repaint()

    @property
    def _standing(self) -> list[tuple[str, Role]]:
        return [(self._silence, Role.BAD), self._mode] if self._silence else [self._mode]

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.replay is None and (snapshot.changed or self._moved_at is None):
            self._moved_at = snapshot.taken_at
        super().show(snapshot)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        rows = [Row.of(strip(snapshot, self._moved_at, view, self._standing))]
        if view.narrow and view.height > 1:
            rows.append(Row.of(tally(snapshot, view)))
        return Painting(rows)

    def head(self, view: View) -> tuple[Line, ...]:
        pen = view.pen().gap().add(self._title_text, Role.STRONG)
        return (_right(pen, self._standing),)

    def _make_painting(self) -> Painting:
        painting = super()._make_painting()
        return painting if self.snapshot is not None else Painting(rows=[Row.of(line) for line in painting.head])


def strip(snapshot: Snapshot, moved_at: datetime | None, view: View, standing: list[tuple[str, Role]]) -> Line:
    """`standing` says who may act from here, and whether what is watched still answers."""
    pen = view.pen().gap().add(snapshot.title, Role.STRONG)
    if snapshot.replay is not None:
        return _right(pen, [*_marks(snapshot), *_replay(snapshot.taken_at, snapshot.replay, view)])
    right = [*_marks(snapshot), *standing]
    if moved_at is not None:
        # A clock would tick for nothing; the moment of the last change also says how long it has been quiet.
        label = "" if view.narrow else "last change "
        right.append((f"{label}{figures.clock(moved_at)}", Role.DIM))
    reserved = sum(pen.measure(text) + 2 for text, _ in right)
    for parts in [_watcher(snapshot.watcher), _reading(snapshot)] if not view.narrow else [_reading(snapshot)]:
        size = sum(pen.measure(text) for text, _ in parts) + _GAP
        if size <= pen.left - reserved:
            pen.gap(_GAP)
            for text, role in parts:
                pen.add(text, role)
    return _right(pen, right)


def tally(snapshot: Snapshot, view: View) -> Line:
    """How many trials are in which state, what is wrong first."""
    pen = view.pen().gap()
    for glyph, word, role, number in counts(snapshot):
        if not pen.fits(f"{glyph} {number} {word}"):
            break
        pen.add(f"{glyph} {number} ", role).add(word).gap(2)
    if snapshot.watcher.state is not WatcherState.NONE:
        parts = _watcher(snapshot.watcher)
        if pen.fits(*(text for text, _ in parts)):
            for text, role in parts:
                pen.add(text, role)
    return pen.line()


def _watcher(watcher: Watcher) -> list[tuple[str, Role]]:
    if watcher.state is WatcherState.NONE:
        return [("no watcher", Role.DIM)]
    role = _WATCHER_ROLE[watcher.state]
    words = "" if watcher.state is WatcherState.ALIVE else f"{watcher.state} "
    age = figures.age(watcher.age_s) if watcher.age_s is not None else ""
    return [("watcher ", Role.DIM), (f"{glyphs.WATCHER[watcher.state]} ", role), (f"{words}{age}".strip(), role)]


def _reading(snapshot: Snapshot) -> list[tuple[str, Role]]:
    money = snapshot.money
    if money.reading_age_s is None:
        words = ("ahead of the clock", Role.BAD) if money.reading_stale else (figures.MISSING, Role.DIM)
        return [("reading ", Role.DIM), words]
    role = Role.BAD if money.reading_stale else Role.TEXT
    return [
        ("reading ", Role.DIM),
        (figures.age(money.reading_age_s) + (" stale" if money.reading_stale else ""), role),
    ]


def _replay(at: datetime, replay: Replay, view: View) -> list[tuple[str, Role]]:
    halt = "" if replay.playing else " at the end" if at >= replay.ends_at else " paused"
    pace = f"{replay.speed:g}x{halt}"
    when = f"{at:%H:%M:%S}Z" if view.narrow else f"{at:%Y-%m-%d %H:%M:%S}Z"
    now = [(f"now {glyphs.SEVERITY[Severity.WARNING]} {replay.alerts_now}", Role.BAD)] if replay.alerts_now else []
    return [(pace, Role.DIM), *now, (f"REPLAY {when}", Role.WARN)]


def _marks(snapshot: Snapshot) -> list[tuple[str, Role]]:
    marks = []
    if known := sum(alert.acknowledged for alert in snapshot.alerts):
        marks.append((f"{known} acknowledged", Role.DIM))
    if snapshot.polling:
        marks.append((snapshot.polling, Role.DIM))
    if snapshot.sample:
        marks.append(("SAMPLE", Role.WARN))
    if snapshot.money.simulated:
        marks.append(("SIMULATED MONEY", Role.WARN))
    return marks


def _right(pen: Pen, parts: list[tuple[str, Role]]) -> Line:
    """`parts` at the right edge; the first ones go where there is no room for all."""
    while parts and sum(pen.measure(text) + 2 for text, _ in parts) > pen.left:
        parts = parts[1:]
    pen.to(pen.width - sum(pen.measure(text) + 2 for text, _ in parts))
    for text, role in parts:
        pen.gap().add(text, role).gap()
    return pen.line()
