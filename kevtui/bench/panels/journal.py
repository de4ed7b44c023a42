"""The agent's journal, an iteration a line, with the mark of whether the machine agrees with it."""

from functools import partial

from kevtui import format as figures
from kevtui.bench import words
from kevtui.bench.panels.panel import BenchPanel, gain_role
from kevtui.bench.snapshot import BenchSnapshot, JournalEntry
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View

_MARK_ROLE = {True: Role.GOOD, False: Role.BAD, None: Role.DIM}
_STATUS_ROLE = {True: Role.GOOD, False: Role.WARN, None: Role.DIM}
_WIDTHS = {"iteration": 9, "took": 7, "status": 8, "score": 7, "change": 7, "type": 6, "failure": 18}
_NARROW = ("iteration", "score", "type")
_RIGHT = ("iteration", "took", "score", "change")


class JournalPanel(BenchPanel):
    NAME = "3 Journal"
    NEWEST_FIRST = True

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        if snapshot.run is None:
            return Painting()
        journal = snapshot.run.journal
        rows = [
            Row.of(view.pen().gap(1 if view.narrow else 0).add(f"✗ {breach}", Role.BAD).line())
            for breach in journal.breaches
        ]
        if not journal.entries:
            empty = view.pen().gap(1 if view.narrow else 0).add("no iteration written yet", Role.DIM).line()
            return Painting([*rows, Row.of(empty)])
        columns = _columns(view, journal.entries)
        rows += [Row(key_of(each), partial(draw, each, columns, view)) for each in reversed(journal.entries)]
        return Painting(rows, (heading(columns, view),), f" · {journal.note}" if journal.note else "")

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.run is None


def key_of(entry: JournalEntry) -> str:
    return f"iteration {entry.number} {entry.line}"


def _columns(view: View, entries: tuple[JournalEntry, ...]) -> list[str]:
    failed = any(entry.failure_named for entry in entries)
    wide = [name for name in _WIDTHS if name != "failure" or failed]
    return wide if view.width >= 80 else [name for name in wide if name in _NARROW]


def heading(columns: list[str], view: View) -> Line:
    pen = view.pen().gap(3 if view.narrow else 2)
    for name in columns:
        pen.add(name, Role.DIM, width=_WIDTHS[name], right=name in _RIGHT).gap(2)
    return pen.add("what", Role.DIM).line()


def draw(entry: JournalEntry, columns: list[str], view: View) -> Line:
    cells = {
        "iteration": (str(entry.number), Role.TEXT),
        "took": (figures.age(entry.duration_s), Role.TEXT),
        "status": (words.outcome(entry), _STATUS_ROLE[entry.succeeded]),
        "score": (words.score(entry.score), Role.TEXT),
        "change": (words.gain(entry.improvement), gain_role(entry.improvement)),
        "type": (entry.train_type or figures.MISSING, Role.TEXT),
        "failure": (entry.failure_named, Role.WARN),
    }
    pen = view.pen().gap(1 if view.narrow else 0).add(f"{words.check_mark(entry)} ", _MARK_ROLE[entry.holds])
    for name in columns:
        text, role = cells[name]
        pen.add(text, role, width=_WIDTHS[name], right=name in _RIGHT).gap(2)
    if not entry.breaches:
        return pen.add(entry.what).line()
    more = f" (and {len(entry.breaches) - 1} more)" if len(entry.breaches) > 1 else ""
    pen.add(entry.what, width=min(pen.measure(entry.what), pen.left // 2)).gap(2)
    return pen.add(f"{entry.breaches[0]}{more}", Role.BAD).line()
