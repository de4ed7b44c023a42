"""The keys that matter most, from the one table of bindings."""

from kevtui.keymap import Binding
from kevtui.observe.snapshot import Snapshot
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Line, Role
from kevtui.widgets.painting import Painting, Row, View
from kevtui.widgets.panel import Panel

_ALWAYS = ("help", "quit")


class Footer(Panel, can_focus=False):
    def __init__(self, ink: Ink, bindings: tuple[Binding, ...], *, id: str) -> None:  # noqa: A002
        super().__init__(ink, id=id)
        self._table = bindings

    def use(self, bindings: tuple[Binding, ...]) -> None:
        """Show the keys of another table."""
        self._table = bindings
        self.repaint()

    def show(self, snapshot: Snapshot) -> None:
        """Keys do not depend on what is watched."""

    def _make_painting(self) -> Painting:
        size = self.content_size
        view = View(size.width, size.height, self.ink)
        return Painting([Row.of(keys(self._table, view))])


def keys(bindings: tuple[Binding, ...], view: View) -> Line:
    """As many of the footer's keys as there is room for; help and quit are the last to go."""
    shown = [binding for binding in bindings if binding.footer]
    pen = view.pen()

    def size(chosen: list[Binding]) -> int:
        return 1 + sum(pen.measure(f"{binding.label} {binding.verb}") + 2 for binding in chosen)

    while shown and size(shown) > view.width:
        optional = [binding for binding in shown if binding.id not in _ALWAYS]
        shown.remove(optional[-1] if optional else shown[0])
    pen.gap()
    for binding in shown:
        pen.add(binding.label, Role.ACCENT).add(f" {binding.verb}", Role.DIM).gap(2)
    return pen.line()
