"""Python source read as a tree and never run: what each name is bound to, where that can be told for certain.

A name counts only where it is bound once, by a plain statement that nothing can step around. Everything else is
unknown: a wrong value in a journal is worse than none.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kev import files
from kev.errors import DamagedFile
from kev.text import lines_of

MOST_FILES = 200
MOST_BYTES = 1024 * 1024
MOST_IN_ALL = 8 * 1024 * 1024
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name its meaning; `value` where it is a plain assignment, `origin` an import's."""

    line: int
    value: ast.expr | None = None
    origin: str | None = None
    definition: ast.AST | None = None
    certain: bool = True
    """False inside a branch, a loop, a `try`, and for whatever is no plain assignment."""


@dataclass(slots=True)
class Source:
    """One file: its tree, and the bindings of each scope in it."""

    path: Path
    module: str
    tree: ast.Module
    lines: list[str]
    bindings: dict[ast.AST, dict[str, list[Binding]]] = field(default_factory=dict)
    scope_of: dict[ast.AST, list[ast.AST]] = field(default_factory=dict)
    """The scopes around a node, the innermost first."""
    stars: list[int] = field(default_factory=list)
    """Lines that import whatever another module has."""
    rebound: set[str] = field(default_factory=set)
    """Names that a function declares `global` or `nonlocal`."""

    def find(self, name: str, node: ast.AST) -> Binding | None:
        """The one binding of `name` as `node` sees it, or None where that cannot be told."""
        for scope in self.scope_of.get(node, [self.tree]):
            found = self.bindings.get(scope, {}).get(name)
            if not found:
                continue
            if len(found) > 1 or not found[0].certain or name in self.rebound:
                return None
            if scope is self.tree and any(line > found[0].line for line in self.stars):
                return None
            same = scope is self.scope_of.get(node, [self.tree])[0]
            return None if same and found[0].line > getattr(node, "lineno", 0) else found[0]
        return None


def read_sources(directory: Path) -> tuple[list[Source], list[str]]:
    """The Python files under `directory` that can be read, and a line for each that cannot. Links are not followed."""
    sources, findings, left = [], [], MOST_IN_ALL
    for path in python_files(directory):
        try:
            text = files.read_bytes(path, limit=MOST_BYTES)
            left -= len(text)
            if left < 0:
                findings.append(f"{path.relative_to(directory)}: more source than is read")
                break
            tree = ast.parse(text)
        except (DamagedFile, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            findings.append(f"{path.relative_to(directory)}: cannot be read as Python ({type(error).__name__})")
            continue
        module = ".".join(path.relative_to(directory).with_suffix("").parts)
        source = Source(path, module, tree, lines_of(text.decode(errors="replace")))
        try:
            _Binder(source).visit_scope(tree, [])
        except RecursionError:
            findings.append(f"{path.relative_to(directory)}: nested too deeply")
            continue
        sources.append(source)
    return sources, findings


def python_files(directory: Path) -> Iterator[Path]:
    """The files that count as source: no links, nothing hidden, and no more than MOST_FILES of them."""
    if directory.is_symlink() or not directory.is_dir():
        return
    found = 0
    for path in sorted(directory.rglob("*.py")):
        inside = path.relative_to(directory).parents
        linked = path.is_symlink() or any((directory / part).is_symlink() for part in inside)
        if linked or not path.is_file() or any(part.startswith(".") for part in path.relative_to(directory).parts):
            continue
        found += 1
        if found > MOST_FILES:
            return
        yield path


def is_never(test: ast.expr) -> bool:
    """Whether a condition is false whatever happens: `False`, `0`, `TYPE_CHECKING`."""
    if isinstance(test, ast.Constant):
        return not test.value
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


class _Binder:
    """Walks a file once and notes who binds what."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def visit_scope(self, scope: ast.AST, around: list[ast.AST]) -> None:
        self._source.bindings[scope] = {}
        # A class body is no scope of the functions in it.
        inner = [scope, *(each for each in around if not isinstance(each, ast.ClassDef))]
        for argument in ast.walk(scope.args) if isinstance(scope, _FUNCTIONS) else ():
            if isinstance(argument, ast.arg):
                self._bind(scope, argument.arg, Binding(getattr(scope, "lineno", 0), certain=False))
        body = getattr(scope, "body", [])
        for node in body if isinstance(body, list) else [body]:
            self._visit(node, scope, inner, certain=True)

    def _bind(self, scope: ast.AST, name: str, binding: Binding) -> None:
        self._source.bindings[scope].setdefault(name, []).append(binding)

    def _visit(self, node: ast.AST, scope: ast.AST, around: list[ast.AST], *, certain: bool) -> None:
        self._source.scope_of[node] = around
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Import(names=names):
                for alias in names:
                    name = alias.asname or alias.name.partition(".")[0]
                    origin = alias.name if alias.asname else name
                    self._bind(scope, name, Binding(line, origin=origin, certain=certain))
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    if alias.name == "*":
                        self._source.stars.append(line)
                    origin = f"{module or ''}.{alias.name}"
                    self._bind(scope, alias.asname or alias.name, Binding(line, origin=origin, certain=certain))
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._bind(scope, name, Binding(line, value=value, certain=certain))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._bind(scope, name, Binding(line, definition=node, certain=certain))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._source.rebound.update(names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self._bind(scope, name, Binding(line, certain=False))
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self._bind(scope, name, Binding(line, certain=False))
        self._below(node, scope, around, certain=certain)

    def _below(self, node: ast.AST, scope: ast.AST, around: list[ast.AST], *, certain: bool) -> None:
        if isinstance(node, _SCOPES):
            for outside in [*getattr(node, "decorator_list", []), *getattr(node, "bases", [])]:
                self._visit(outside, scope, around, certain=certain)
            self.visit_scope(node, around)
            return
        plain = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        annotated = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        straight = isinstance(node, ast.With | ast.Expr | ast.Assign | ast.AnnAssign | ast.Call | ast.Return)
        below = certain and (straight or (isinstance(node, ast.If) and _is_main(node.test)))
        for name, child in _children(node):
            if name in ("targets", "target") and (plain or annotated):
                self._source.scope_of[child] = around
                continue
            self._visit(child, scope, around, certain=below)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.If) and name == "body" and is_never(node.test):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child
