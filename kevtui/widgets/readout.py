"""What came out: each arm's criteria, its temperature and where that came from, the candidate of each size."""

from kevtui import format as figures
from kevtui import glyphs
from kevtui.observe.snapshot import Arm, Readout, Section, Snapshot, Verdict
from kevtui.widgets import criteria
from kevtui.widgets.line import Line, Pen, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel

_MANY = 4
"""More names than this are counted instead of listed."""


class ReadoutPanel(Panel):
    NAME = "4 Read-out"
    SECTIONS = (Section.READOUT,)

    def paint(self, snapshot: Snapshot, view: View) -> Painting:
        readout = snapshot.readout
        if readout is None:
            return Painting([Row.of(view.pen().add("no round is registered here", Role.DIM).line())])
        rows = [Row.of(candidates(readout, view), "candidates")]
        if view.narrow:
            rows += [Row.of(short(arm, view), f"arm {arm.name}") for arm in readout.arms]
        else:
            rows += _in_full(readout, view)
        return Painting(rows, note=_source(readout))

    def has_nothing(self, snapshot: Snapshot) -> bool:
        return snapshot.readout is None


def _in_full(readout: Readout, view: View) -> list[Row]:
    every = [criterion for arm in readout.arms for criterion in arm.criteria]
    columns = criteria.Columns.fit(every, view.width - 2)
    rows = [Row.of(criteria.heading(columns, view, indent=2))] if every else []
    for arm in readout.arms:
        rows.append(Row.of(heading(arm, view), f"arm {arm.name}"))
        rows += [
            Row.of(criteria.line(criterion, columns, view, indent=2), f"{arm.name} {criterion.name}")
            for criterion in arm.criteria
        ]
        if arm.missing:
            rows.append(Row.of(_missing(arm, view), f"missing {arm.name}"))
    return rows


def heading(arm: Arm, view: View) -> Line:
    pen = view.pen()
    _verdict(pen, arm)
    pen.add(arm.name, Role.STRONG)
    if arm.size and arm.size not in arm.name:
        pen.add(f" {arm.size}", Role.DIM)
    pen.add(f"  {summary(arm)}")
    if not arm.selectable:
        pen.add("  attribution only", Role.DIM)
    _temperature(pen, arm)
    if arm.parent:
        _if_it_fits(pen, f"  against {arm.parent}")
    return pen.line()


def short(arm: Arm, view: View) -> Line:
    """One line an arm: the verdict, how many pass, and the first criterion that does not."""
    pen = view.pen().gap()
    _verdict(pen, arm)
    pen.add(arm.name, Role.STRONG).add(f"  {summary(arm)}")
    failed = next((c for c in arm.criteria if c.verdict is Verdict.FAIL), None)
    if failed is not None:
        pen.add(f"  {glyphs.BAD} ", Role.BAD).add(failed.name)
        _if_it_fits(pen, f" {criteria.number(failed.value)}", Role.BAD)
        _if_it_fits(pen, f", needs {criteria.need(failed)}")
    elif arm.missing:
        pen.add(f"  {_reads(len(arm.missing))} missing", Role.WARN)
    return pen.line()


def summary(arm: Arm) -> str:
    if not arm.criteria:
        return arm.note or "not read yet"
    passed = sum(criterion.verdict is Verdict.PASS for criterion in arm.criteria)
    return f"{passed} of {len(arm.criteria)} pass"


def candidates(readout: Readout, view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    if not readout.candidates:
        return pen.add("candidate ", Role.DIM).add(figures.MISSING).line()
    for size, arm in readout.candidates:
        pen.add(f"candidate {size} ", Role.DIM).add(arm or "none", Role.GOOD if arm else Role.TEXT).gap(3)
    missing = sum(len(arm.missing) for arm in readout.arms)
    if missing:
        pen.add(f"{_reads(missing)} missing", Role.WARN)
    return pen.line()


def _verdict(pen: Pen, arm: Arm) -> None:
    failed = any(criterion.verdict is Verdict.FAIL for criterion in arm.criteria)
    if arm.passed:
        pen.add(f"{glyphs.GOOD} passes ", Role.GOOD)
    elif failed or (arm.passed is False and arm.complete):
        pen.add(f"{glyphs.BAD} fails  ", Role.BAD)
    else:
        pen.add(f"{glyphs.NOTHING} open   ", Role.WARN if arm.criteria else Role.DIM)


def _temperature(pen: Pen, arm: Arm) -> None:
    if arm.temperature is None:
        return
    more: list[tuple[str, Role]] = []
    if arm.temperature_low is not None and arm.temperature_high is not None:
        more.append((f" [{arm.temperature_low:.2f}, {arm.temperature_high:.2f}]", Role.DIM))
    if arm.in_distribution:
        more.append((" in distribution", Role.WARN))
    if arm.temperature_source:
        more.append((f" from {arm.temperature_source}", Role.DIM))
    fitted = f"{arm.temperature:.2f}"
    rooms = [_that_fit(more, pen, pen.left - pen.measure(f"{word}{fitted}")) for word in ("  temperature ", "  T ")]
    in_full = rooms[0] == rooms[1] and pen.fits("  temperature ", fitted)
    pen.add("  temperature " if in_full else "  T ", Role.DIM).add(fitted)
    for text, role in rooms[1]:
        pen.add(text, role)


def _that_fit(texts: list[tuple[str, Role]], pen: Pen, room: int) -> list[tuple[str, Role]]:
    """Of `texts`, in their order, each that still has room for all of it."""
    found = []
    for text, role in texts:
        if (cells := pen.measure(text)) <= room:
            room -= cells
            found.append((text, role))
    return found


def _if_it_fits(pen: Pen, text: str, role: Role = Role.DIM) -> None:
    """What has no room for all of it is in the details; a cut figure would be read as another one."""
    if pen.fits(text):
        pen.add(text, role)


def _reads(number: int) -> str:
    return f"{number} read{'s' if number != 1 else ''}"


def _missing(arm: Arm, view: View) -> Line:
    listed = ", ".join(arm.missing) if len(arm.missing) <= _MANY else f"{', '.join(arm.missing[:_MANY])}, …"
    pen = view.pen().gap(2).add(f"{glyphs.NOTHING} missing", Role.WARN, width=criteria.VERDICT)
    return pen.add(f"{_reads(len(arm.missing))}: {listed}", Role.DIM).line()


def _source(readout: Readout) -> str:
    note = f" · round {readout.round}" if readout.round is not None else ""
    if not readout.source:
        return f"{note} · not read out yet"
    age = f", {figures.age(readout.age_s)} ago" if readout.age_s is not None else ""
    return f"{note} · {readout.source.rpartition('/')[2]}{age}"
