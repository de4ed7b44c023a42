"""What prints sees the Snapshot, not the code that builds it."""

import ast
from pathlib import Path

import pytest

PRINTERS = sorted((Path(__file__).parents[3] / "kevtui" / "headless").glob("*.py"))
SEEN = {
    "kev.text",
    "kev.clock",
    "kevtui",
    "kevtui.format",
    "kevtui.glyphs",
    "kevtui.observe",
    "kevtui.observe.snapshot",
}


@pytest.mark.parametrize("path", PRINTERS, ids=lambda path: path.stem)
def test_a_printer_imports_nothing_of_ours_but_the_snapshot_and_how_to_write_figures(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
    ours = {name for name in imported if name.partition(".")[0] in ("kev", "kevtui")}
    if path.stem == "schema":
        ours.discard("kev.console")  # it is a command of its own, too
    assert {name for name in ours if not name.startswith("kevtui.headless")} <= SEEN
