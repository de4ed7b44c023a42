"""The code that a section shows: a few lines that say what the round is, and a piece of at most 40 around them."""

import ast
from collections.abc import Sequence
from textwrap import dedent

from kev.autorl.journal.check_form import MOST_KEY_CODE, MOST_SNIPPET
from kev.autorl.journal.section import SNIPPET, Section, block, unchanged_since
from kev.autorl.journal.sources import Source
from kev.autorl.journal.training import UNKNOWN, Training

LEAST_SNIPPET = 15


def key_lines(said: str, training: Training, sources: Sequence[Source]) -> str:
    """The caller's lines, or those that make the trainer; `unknown` without a source."""
    lines = [line for line in said.expandtabs(4).split("\n") if line.strip()]
    if not lines:
        source, line = _place(training, sources)
        if source is None:
            return UNKNOWN
        inner = _function(source, line)
        last = len(source.lines) if inner is None else inner.end_lineno
        lines = [each for each in source.lines[_statement(source, line) - 1 : last] if each.strip()]
    return "\n" + block("", dedent("\n".join(lines[:MOST_KEY_CODE])).split("\n")).strip()


def snippet(said: str, training: Training, sources: Sequence[Source], before: Sequence[Section]) -> str:
    """The caller's piece, or the function that makes the trainer; where a round had it already, the round's number."""
    if said.strip():
        head = "" if training.path is None else training.path.name
        shown = block(head, said.strip("\n").split("\n")[:MOST_SNIPPET])
    else:
        source, line = _place(training, sources)
        if source is None:
            return UNKNOWN
        name, first, last = _around(source, line)
        shown = block(f"{source.path.name} {name}L{first}-L{last}", source.lines[first - 1 : last])
    same = next((each.iteration for each in reversed(before) if each.text(SNIPPET) == shown.strip()), None)
    return shown if same is None else unchanged_since(same)


def _place(training: Training, sources: Sequence[Source]) -> tuple[Source | None, int]:
    """The file to show, and the line in it that matters."""
    for source in sources:
        if source.path == training.path and training.line is not None:
            return source, training.line
    for source in sources:
        for node in source.tree.body:
            if not isinstance(node, ast.Import | ast.ImportFrom) and not _is_docstring(node):
                return source, node.lineno
    return None, 0


def _around(source: Source, line: int) -> tuple[str, int, int]:
    """The innermost function around a line, or as much of it as may be shown."""
    inner = _function(source, line)
    total = len(source.lines)
    first, last = (1, total) if inner is None else (inner.lineno, inner.end_lineno or total)
    if last - first + 1 < LEAST_SNIPPET:
        first = max(1, last - LEAST_SNIPPET + 1)
        last = min(total, first + LEAST_SNIPPET - 1)
    if last - first + 1 > MOST_SNIPPET:
        first = min(max(first, line - MOST_SNIPPET // 2), last - MOST_SNIPPET + 1)
        last = first + MOST_SNIPPET - 1
    return ("" if inner is None else f"{inner.name}() "), first, last


def _function(source: Source, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    functions = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(functions, key=lambda node: node.lineno, default=None)


def _statement(source: Source, line: int) -> int:
    """The first line of the innermost statement around a line."""
    starts = [
        node.lineno
        for node in ast.walk(source.tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(starts, default=line)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
