"""Which reads are there: one row an arm or parent, one column a read tag."""

from collections import Counter

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import ReadCell, Reads, ReadState, Section, Snapshot
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel

ROLE = {
    ReadState.ABSENT: Role.DIM,
    ReadState.IN_FLIGHT: Role.ACCENT,
    ReadState.OVERDUE: Role.WARN,
    ReadState.LANDED: Role.GOOD,
    ReadState.FAILED: Role.BAD,
}
_LEGEND_ORDER = (ReadState.FAILED, ReadState.OVERDUE, ReadState.IN_FLIGHT, ReadState.LANDED, ReadState.ABSENT)
_WIDEST_TAG = 12


class ReadsPanel(Panel):
    NAME = "3 Reads"
    SECTIONS = (Section.READS,)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        reads = snapshot.reads
        cells = {(cell.owner, cell.tag): cell for cell in reads.cells}
        name = min(max((len(owner) for owner in reads.owners), default=4), max(6, view.width // 4))
        tags = tag_widths(reads, view.width - name - (1 if view.narrow else 0))
        rows = [Row.of(_row(owner, reads, cells, name, tags, view), owner) for owner in reads.owners]
        return Painting(rows, (legend(reads, view), _tags(reads, name, tags, view)))

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return not snapshot.reads.owners


def legend(reads: Reads, view: View) -> Line:
    """Each sign with its word and how many there are, what is wrong first."""
    tally = Counter(cell.state for cell in reads.cells)
    there = [state for state in _LEGEND_ORDER if tally[state] > 0]
    pen = view.pen().gap(1 if view.narrow else 0)
    # Where all of it has no room, the two states that need no one's attention lose their numbers.
    tight = not pen.fits("  ".join(f"{glyphs.READ[state]} {tally[state]} {state}" for state in there))
    for state in there:
        number = "" if tight and state in (ReadState.LANDED, ReadState.ABSENT) else f"{tally[state]} "
        pen.add(f"{glyphs.READ[state]} ", ROLE[state]).add(f"{number}{state}", Role.DIM).gap(1 if tight else 2)
    return pen.line()


def tag_widths(reads: Reads, room: int) -> list[int]:
    """Cells for each tag: its length where there is room, the longest cut first where there is not."""
    widths = [max(2, min(len(tag), _WIDEST_TAG)) for tag in reads.tags]
    while sum(widths) + len(widths) > room and max(widths, default=0) > 3:
        widths[widths.index(max(widths))] -= 1
    spare = room - sum(widths) - len(widths)
    # Room for a remark such as "◐ 12/40" or "▲ 90 min", where the tags themselves are short.
    for i, width in enumerate(widths):
        more = max(0, min(spare, 8 - width))
        widths[i] += more
        spare -= more
    return widths


def _tags(reads: Reads, name: int, widths: list[int], view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0).add("arm", Role.DIM, width=name)
    for text, tag in zip(reads.tags, widths, strict=True):
        pen.gap().add(text, Role.DIM, width=tag)
    return pen.line()


def _row(
    owner: str, reads: Reads, cells: dict[tuple[str, str], ReadCell], name: int, widths: list[int], view: View
) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0).add(owner, width=name)
    for text, tag in zip(reads.tags, widths, strict=True):
        cell = cells.get((owner, text))
        if cell is None:
            # Not registered for this arm: nobody waits for it.
            pen.gap(1 + tag)
            continue
        state = cell.state
        pen.gap().add(f"{glyphs.READ[state]} {_remark(cell, tag - 2)}".rstrip(), ROLE[state], width=tag)
    return pen.line()


def _remark(cell: ReadCell | None, room: int) -> str:
    if cell is None or cell.state not in (ReadState.IN_FLIGHT, ReadState.OVERDUE):
        return ""
    for text in ("/".join(map(str, cell.progress)) if cell.progress else "", figures.age(cell.age_s)):
        if text and text != figures.MISSING and len(text) <= room:
            return text
    return ""
