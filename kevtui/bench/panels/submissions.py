"""What the agent handed in, and what it was worth."""

from functools import partial

from kevtui import format as figures
from kevtui import glyphs
from kevtui.bench import words
from kevtui.bench.panels.panel import BenchPanel, gain_role, standing_role
from kevtui.bench.snapshot import BenchSnapshot, Submission
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View

_WIDTHS = {"no.": 4, "after": 7, "score": 7, "change": 7, "is": 17}
_NARROW = ("no.", "score", "change", "is")


class SubmissionsPanel(BenchPanel):
    NAME = "1 Submissions"
    NEWEST_FIRST = True

    def paint(self, snapshot: BenchSnapshot, view: View) -> Painting:
        submissions = snapshot.run.submissions if snapshot.run is not None else ()
        if not submissions:
            return Painting([Row.of(view.pen().gap(1 if view.narrow else 0).add("none graded yet", Role.DIM).line())])
        rows = [Row(key_of(each), partial(draw, each, view)) for each in reversed(submissions)]
        return Painting(rows, (heading(view),), f" · {len(submissions)}")

    def head(self, view: View) -> tuple[Line, ...]:
        return (heading(view),)

    def has_nothing(self, snapshot: BenchSnapshot) -> bool:
        return snapshot.run is None


def key_of(submission: Submission) -> str:
    return f"submission {submission.number}"


def _columns(view: View) -> list[str]:
    return [name for name in _WIDTHS if view.width >= 60 or name in _NARROW]


def heading(view: View) -> Line:
    pen = view.pen().gap(1 if view.narrow else 0)
    for name in _columns(view):
        pen.add(name, Role.DIM, width=_WIDTHS[name], right=name != "is").gap(2)
    return pen.add("model", Role.DIM).line()


def draw(each: Submission, view: View) -> Line:
    standing = words.standing(each)
    cells = {
        "no.": (str(each.number), Role.TEXT),
        "after": (figures.age(each.at_s), Role.TEXT),
        "score": (words.score(each.score), Role.STRONG if each.best else Role.TEXT),
        "change": (words.gain(each.improvement), gain_role(each.improvement)),
        "is": (f"{standing}{' ' + glyphs.GOOD + ' best' if each.best else ''}", standing_role(standing)),
    }
    pen = view.pen().gap(1 if view.narrow else 0)
    for name in _columns(view):
        text, role = cells[name]
        pen.add(text, role, width=_WIDTHS[name], right=name != "is").gap(2)
    pen.add(each.model_path, Role.TEXT if each.error is None else Role.DIM)
    if each.error is not None:
        pen.gap(2).add(each.error, Role.BAD)
    return pen.line()
