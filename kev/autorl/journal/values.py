"""The value that an expression certainly has, worked out from the source alone."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kev.autorl.journal.sources import Source

Plain = int | float | str | bool | None
MOST_STEPS = 12
_TREES = {"omegaconf.OmegaConf.create", "types.SimpleNamespace", "easydict.EasyDict", "ml_collections.ConfigDict"}


class Unknown(Exception):
    """The source does not say."""


@dataclass(slots=True)
class Changes:
    """What any file changes after it was made: keys, attributes, and names whose keys cannot be told."""

    keys: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    everything: bool = False


class Evaluator:
    """Evaluates expressions of `sources`; `options` is the text of scripts that may pass arguments."""

    def __init__(self, sources: Sequence[Source], options: str = "") -> None:
        self._sources = sources
        self._options = options
        self._changes = find_changes(sources)

    @property
    def changes(self) -> Changes:
        return self._changes

    def origin(self, node: ast.expr, source: Source, steps: int = 0) -> str | None:
        """The dotted name that `node` was imported as, following aliases; None where that cannot be told."""
        if steps > MOST_STEPS:
            return None
        if isinstance(node, ast.Attribute):
            base = self.origin(node.value, source, steps + 1)
            return None if base is None else f"{base}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        binding = source.find(node.id, node)
        if binding is None:
            return None
        if binding.value is not None:
            return self.origin(binding.value, source, steps + 1)
        if isinstance(binding.definition, ast.ClassDef) and len(binding.definition.bases) == 1:
            return self.origin(binding.definition.bases[0], source, steps + 1)
        return binding.origin

    def value(self, node: ast.expr, source: Source, steps: int = 0) -> Plain:
        """The plain value of `node`. Raises Unknown."""
        found, _ = self._follow(node, source, steps)
        if isinstance(found, ast.Constant) and isinstance(found.value, int | float | str | bool | None):
            return found.value
        match found:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_number(self.value(operand, source, steps + 1))
            case ast.BinOp(left=left, op=op, right=right):
                one = _number(self.value(left, source, steps + 1))
                return _calculate(one, op, _number(self.value(right, source, steps + 1)))
            case ast.Call(func=ast.Name(id="float" | "int" as kind), args=[argument], keywords=[]):
                if source.find(kind, found.func) is None and not _is_bound(source, kind):
                    return _converted(self.value(argument, source, steps + 1), kind)
        raise Unknown

    def follow(self, node: ast.expr, source: Source) -> tuple[ast.expr, Source]:
        """The expression that a name stands for, and the file it is in. Raises Unknown."""
        return self._follow(node, source, 0)

    def _follow(self, node: ast.expr, source: Source, steps: int) -> tuple[ast.expr, Source]:
        if steps > MOST_STEPS:
            raise Unknown
        match node:
            case ast.Name():
                return self._follow_name(node, source, steps)
            case ast.Attribute(value=base, attr=name):
                return self._item(base, name, source, steps, attribute=True)
            case ast.Subscript(value=base, slice=ast.Constant(value=str(name))):
                return self._item(base, name, source, steps, attribute=False)
        return node, source

    def _follow_name(self, node: ast.Name, source: Source, steps: int) -> tuple[ast.expr, Source]:
        binding = source.find(node.id, node)
        if binding is None or node.id in self._changes.names:
            raise Unknown
        if binding.value is not None:
            return self._follow(binding.value, source, steps + 1)
        if binding.origin is not None:
            module, _, name = binding.origin.rpartition(".")
            for other in self._sources:
                if other.module == module:
                    found = other.bindings[other.tree].get(name, [])
                    if len(found) == 1 and found[0].certain and found[0].value and name not in other.rebound:
                        if other.stars:
                            raise Unknown
                        return self._follow(found[0].value, other, steps + 1)
        raise Unknown

    def _item(
        self, base: ast.expr, name: str, source: Source, steps: int, *, attribute: bool
    ) -> tuple[ast.expr, Source]:
        if self._changes.everything or name in self._changes.keys or name in self._changes.attributes:
            raise Unknown
        if attribute and isinstance(base, ast.Name):
            binding = source.find(base.id, base)
            if binding is not None and isinstance(binding.definition, ast.ClassDef):
                return _field(binding.definition, name), source
        holder, where = self._follow(base, source, steps + 1)
        if isinstance(holder, ast.Dict) and not attribute:
            return _entry(holder, name), where
        if isinstance(holder, ast.Call):
            return self._member(holder, name, where, attribute=attribute)
        if isinstance(holder, ast.Dict) and attribute and self._is_tree(base, source, steps):
            return _entry(holder, name), where
        raise Unknown

    def _is_tree(self, base: ast.expr, source: Source, steps: int) -> bool:
        """Whether a dictionary is read by attributes because it lies inside a configuration object."""
        if not isinstance(base, ast.Attribute) or steps > MOST_STEPS:
            return False
        try:
            holder, where = self._follow(base.value, source, steps + 1)
        except Unknown:
            return False
        if isinstance(holder, ast.Call):
            return self.origin(holder.func, where) == "omegaconf.OmegaConf.create"
        return isinstance(holder, ast.Dict) and self._is_tree(base.value, source, steps + 1)

    def _member(self, call: ast.Call, name: str, source: Source, *, attribute: bool) -> tuple[ast.expr, Source]:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "parse_args" and attribute:
            return self._option(call, name, source), source
        if self.origin(call.func, source) in _TREES or _is_plain_dict(call, source):
            if len(call.args) == 1 and isinstance(call.args[0], ast.Dict) and not call.keywords:
                return _entry(call.args[0], name), source
            if not call.args:
                return _keyword(call, name), source
            raise Unknown
        if isinstance(call.func, ast.Name) and attribute:
            binding = source.find(call.func.id, call.func)
            if binding is not None and isinstance(binding.definition, ast.ClassDef):
                return self._instance(call, binding.definition, name, source), source
        raise Unknown

    def _instance(self, call: ast.Call, made: ast.ClassDef, name: str, source: Source) -> ast.expr:
        if call.args or any(each.arg is None for each in call.keywords):
            raise Unknown
        default = _field(made, name)
        is_dataclass = [
            self.origin(each.func if isinstance(each, ast.Call) else each, source) for each in made.decorator_list
        ] == ["dataclasses.dataclass"]
        given = [each.value for each in call.keywords if each.arg == name]
        if given and not is_dataclass:
            raise Unknown
        return given[0] if given else default

    def _option(self, call: ast.Call, name: str, source: Source) -> ast.expr:
        """The default of an argument that nobody passes."""
        if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
            raise Unknown
        found = []
        for each in ast.walk(source.tree):
            match each:
                case ast.Call(func=ast.Attribute(attr="set_defaults")):
                    raise Unknown
                case ast.Call(func=ast.Attribute(attr="add_argument"), args=names):
                    flags = [flag.value for flag in names if isinstance(flag, ast.Constant)]
                    texts = [flag for flag in flags if isinstance(flag, str)]
                    if len(texts) != len(names) or any(keyword.arg is None for keyword in each.keywords):
                        raise Unknown
                    if _destination(each, texts) == name:
                        found.append((each, texts))
        if len(found) != 1 or any(flag in self._options for flag in found[0][1]):
            raise Unknown
        return _default(found[0][0])


def find_changes(sources: Sequence[Source]) -> Changes:
    """What the files change by assignment to a key or an attribute, by `update`, `setattr` and their like."""
    changes = Changes()
    for source in sources:
        for node in ast.walk(source.tree):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                    changes.attributes.add(name)
                case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Store() | ast.Del()):
                    changes.keys.add(name)
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                    changes.names.add(name)
                case ast.AugAssign(target=ast.Name(id=name)):
                    changes.names.add(name)
                case ast.Call(func=ast.Name(id="setattr" | "delattr" | "exec" | "eval" | "globals" | "vars")):
                    changes.everything = True
                case ast.Attribute(attr="__dict__"):
                    changes.everything = True
                case ast.Call(func=ast.Attribute(value=held, attr="update" | "setdefault" | "pop" | "merge")):
                    _note_update(node, held, changes)
    return changes


def _note_update(node: ast.Call, held: ast.expr, changes: Changes) -> None:
    if isinstance(held, ast.Name):
        changes.names.add(held.id)
    for keyword in node.keywords:
        if keyword.arg is None:
            changes.everything = True
        else:
            changes.keys.add(keyword.arg)
    for argument in node.args:
        if isinstance(argument, ast.Dict):
            changes.keys.update(str(key.value) for key in argument.keys if isinstance(key, ast.Constant))
        elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            changes.keys.add(argument.value)
        elif not isinstance(held, ast.Name) and not isinstance(argument, ast.Constant):
            changes.everything = True


def script_text(directory: Path) -> str:
    """The text of shell scripts under `directory`, which may pass arguments to a training script."""
    from kev import files
    from kev.errors import KevError

    texts = []
    for path in sorted(directory.rglob("*.sh"))[:50] if directory.is_dir() else []:
        try:
            texts.append(files.read_bytes(path, limit=1024 * 1024).decode(errors="replace"))
        except KevError:
            continue
    return "\n".join(texts)


def _number(value: Plain) -> int | float:
    if isinstance(value, int | float):
        return value
    raise Unknown


def _calculate(one: int | float, op: ast.operator, other: int | float) -> int | float:
    try:
        match op:
            case ast.Add():
                return one + other
            case ast.Sub():
                return one - other
            case ast.Mult() if abs(one) < 1e12 and abs(other) < 1e12:
                return one * other
            case ast.Div():
                return one / other
            case ast.FloorDiv():
                return one // other
            case ast.Pow() if abs(one) <= 1e6 and abs(other) <= 32:
                power = one**other
                if isinstance(power, int | float):
                    return power
    except ArithmeticError:
        pass
    raise Unknown


def _converted(value: Plain, kind: str) -> Plain:
    try:
        if isinstance(value, int | float | str):
            return float(value) if kind == "float" else int(value)
    except (ValueError, OverflowError):
        pass
    raise Unknown


def _is_bound(source: Source, name: str) -> bool:
    return any(name in names for names in source.bindings.values())


def _is_plain_dict(call: ast.Call, source: Source) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "dict" and not _is_bound(source, "dict")


def _field(made: ast.ClassDef, name: str) -> ast.expr:
    """The one default that a class gives an attribute."""
    if made.bases or made.keywords or any(isinstance(each, ast.FunctionDef) for each in made.body):
        raise Unknown
    values = []
    for each in made.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                values.append(value)
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if found == name:
                values.append(value)
            case ast.Assign() | ast.AnnAssign() | ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case _:
                raise Unknown
    if len(values) != 1:
        raise Unknown
    return values[0]


def _entry(holder: ast.Dict, name: str) -> ast.expr:
    """The one value that a dictionary display gives a key; an unpacked part may hold any key."""
    if not all(isinstance(key, ast.Constant) for key in holder.keys):
        raise Unknown
    found = [value for key, value in zip(holder.keys, holder.values, strict=True) if _says(key, name)]
    if len(found) != 1:
        raise Unknown
    return found[0]


def _says(key: ast.expr | None, name: str) -> bool:
    return isinstance(key, ast.Constant) and key.value == name


def _keyword(call: ast.Call, name: str) -> ast.expr:
    if any(each.arg is None for each in call.keywords):
        raise Unknown
    found = [each.value for each in call.keywords if each.arg == name]
    if len(found) != 1:
        raise Unknown
    return found[0]


def _destination(call: ast.Call, flags: Sequence[str]) -> str | None:
    for keyword in call.keywords:
        if keyword.arg == "dest":
            named = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            return named if isinstance(named, str) else None
    long = next((flag for flag in flags if flag.startswith("--")), None)
    return None if long is None else long.removeprefix("--").replace("-", "_")


def _default(call: ast.Call) -> ast.expr:
    keywords = {each.arg: each.value for each in call.keywords if each.arg}
    if "action" in keywords:
        raise Unknown
    default, kind = keywords.get("default"), keywords.get("type")
    if default is None:
        raise Unknown
    if isinstance(default, ast.Constant) and isinstance(default.value, str) and kind is not None:
        if not (isinstance(kind, ast.Name) and kind.id in ("int", "float", "str")):
            raise Unknown
        return default if kind.id == "str" else ast.Constant(_converted(default.value, kind.id))
    return default
