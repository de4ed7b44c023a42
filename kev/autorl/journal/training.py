"""What the source under `code/` trains with: the type of training and its hyper-parameters, or `unknown`.

Files are parsed, never run or imported. Two kinds of trainer in one folder are `unknown`, since the source does not
say which of them made the model; so is a method that the journal has no word for, and it is named beside it.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kev.autorl.journal.sources import Source, is_never, read_sources
from kev.autorl.journal.values import Evaluator, Plain, Unknown, script_text

UNKNOWN = "unknown"
TYPES = ("GRPO", "SFT", "PPO", "copy_model", "placeholder", UNKNOWN)
KINDS = {"GRPOTrainer": "GRPO", "SFTTrainer": "SFT", "PPOTrainer": "PPO"}
SHORT = {
    "learning_rate": "lr",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch",
    "gradient_accumulation_steps": "grad_accum",
}
"""Names of the journal for arguments of trl and transformers; others keep their own."""
LONG = {short: name for name, short in SHORT.items()}
SETTINGS = (
    *SHORT, "max_steps", "max_length", "max_completion_length", "num_generations", "beta", "temperature",
    "warmup_ratio", "warmup_steps", "weight_decay", "lr_scheduler_type", "loss_type", "kl_coef", "seed",
)  # fmt: skip
_WORD = re.compile(r"[\w.+/-]{1,60}")
_LIBRARIES = ("trl", "transformers")
_COPIES = {"shutil.copytree", "shutil.copy", "shutil.copy2", "shutil.copyfile", "os.symlink", "os.link"}
_HARMLESS = {"shutil", "os", "pathlib", "sys", "json", "urllib", "requests", "time", "argparse"}


@dataclass(frozen=True, slots=True)
class Training:
    """The type, the settings by their names in the journal, and where in the source that is said."""

    kind: str = UNKNOWN
    settings: dict[str, str] = field(default_factory=dict)
    where: str = ""
    path: Path | None = None
    line: int | None = None
    findings: tuple[str, ...] = ()

    def settings_text(self) -> str:
        """`lr=1e-5, batch=2`, or `unknown`."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items()) or UNKNOWN


@dataclass(frozen=True, slots=True)
class _Made:
    """A place that makes a trainer."""

    trainer: str
    call: ast.Call
    source: Source


@dataclass(frozen=True, slots=True)
class ReadSources:
    """The files under `code` as they were read."""

    code: Path
    sources: list[Source]
    findings: tuple[str, ...]
    evaluator: Evaluator


def read_code(code: Path) -> ReadSources:
    """The files under `code`. Never raises for their content."""
    sources, findings = read_sources(code)
    return ReadSources(code, sources, tuple(findings), Evaluator(sources, script_text(code)))


def training_in(read: ReadSources, file: str = "") -> Training:
    """What the files train with, or the one of them that is called `file`. Never raises for their content.

    The others still say what the names in it stand for.
    """
    code, sources, told, evaluator = read.code, read.sources, read.findings, read.evaluator
    named = [source for source in sources if file in ("", source.path.relative_to(code).as_posix(), source.path.name)]
    made = [each for each in _trainers(sources, evaluator) if any(each.source is source for source in named)]
    if not made:
        return _untrained(named, evaluator) if not told else Training(findings=told)
    names = sorted({each.trainer for each in made})
    if len(names) > 1 or told or not _is_trained(named, _used_names(sources)):
        return Training(UNKNOWN, {"trainer": "+".join(names)}, findings=told)
    first = made[0]
    where = f"{first.source.path.name} L{first.call.lineno}"
    kind = KINDS.get(names[0], UNKNOWN)
    settings = {} if kind != UNKNOWN else {"trainer": names[0]}
    if len(made) == 1:
        settings |= _settings(first, evaluator)
    return Training(kind, settings, where, first.source.path, first.call.lineno)


def number_text(value: Plain) -> str:
    """A value as the journal writes it: 1e-5 rather than 1e-05."""
    text = str(value) if not isinstance(value, float) else repr(value)
    mantissa, e, exponent = text.partition("e")
    if isinstance(value, float) and e:
        return f"{mantissa}e{int(exponent)}"
    return text


def _trainers(sources: Sequence[Source], evaluator: Evaluator) -> Iterator[_Made]:
    """Every trainer that may be made. One whose class cannot be told is named as such."""
    used = _used_names(sources)
    for source in sources:
        for call in _live_calls(source.tree, used):
            written = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            origin = evaluator.origin(call.func, source)
            name = (origin or "").rpartition(".")[2]
            if origin and origin.partition(".")[0] in _LIBRARIES and name.endswith("Trainer"):
                yield _Made(name, call, source)
            elif written.endswith("Trainer") or (written and _may_be_trainer(call.func, source)):
                yield _Made(UNKNOWN, call, source)


def _may_be_trainer(func: ast.expr, source: Source) -> bool:
    """Whether a name that is bound more than once, or by a choice, has anything to do with a trainer."""
    if not isinstance(func, ast.Name):
        return isinstance(func, ast.Subscript | ast.Call | ast.IfExp) and _speaks_of_trainer(func)
    values = [each.value for names in source.bindings.values() for each in names.get(func.id, []) if each.value]
    return any(_speaks_of_trainer(value) for value in values)


def _speaks_of_trainer(node: ast.AST) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))
    return any(str(name).endswith("Trainer") for name in names)


def _used_names(sources: Sequence[Source]) -> set[str]:
    found: set[str] = set()
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)  # `getattr(module, "main")`, or an entry of a table
    return found


def _live_calls(node: ast.AST, used: set[str]) -> Iterator[ast.Call]:
    """Calls that may happen: not under `if False`, nor in a function that nothing names."""
    if isinstance(node, ast.FunctionDef) and node.name not in used and not node.decorator_list:
        return
    if isinstance(node, ast.Call):
        yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.If) and name == "body" and is_never(node.test):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _live_calls(child, used)


def _is_trained(sources: Sequence[Source], used: set[str]) -> bool:
    calls = (call.func for source in sources for call in _live_calls(source.tree, used))
    return any(isinstance(func, ast.Attribute) and func.attr == "train" for func in calls)


def _untrained(sources: Sequence[Source], evaluator: Evaluator) -> Training:
    """What source without a trainer is, and the call that copies where it only does that."""
    kind = _without_trainer(sources, evaluator)
    for source in sources if kind == "copy_model" else ():
        for call in ast.walk(source.tree):
            if isinstance(call, ast.Call) and evaluator.origin(call.func, source) in _COPIES:
                return Training(kind, where=f"{source.path.name} L{call.lineno}", path=source.path, line=call.lineno)
    return Training(kind)


def _without_trainer(sources: Sequence[Source], evaluator: Evaluator) -> str:
    """`placeholder` for source that does nothing, `copy_model` for one that only copies, `unknown` otherwise."""
    if not sources:
        return UNKNOWN
    calls = [(call, source) for source in sources for call in ast.walk(source.tree) if isinstance(call, ast.Call)]
    printing = all(isinstance(call.func, ast.Name) and call.func.id == "print" for call, _ in calls)
    idle = ast.Expr | ast.Pass | ast.Import | ast.ImportFrom
    if printing and all(isinstance(node, idle) for source in sources for node in source.tree.body):
        return "placeholder"
    modules = {
        _top(alias.name if isinstance(node, ast.Import) else node.module or "")
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    starts = any(
        (evaluator.origin(call.func, source) or "").startswith(("os.system", "os.exec", "os.spawn", "os.popen"))
        or (isinstance(call.func, ast.Name) and call.func.id in ("exec", "eval", "open", "__import__", "getattr"))
        or (isinstance(call.func, ast.Attribute) and call.func.attr in ("write_bytes", "open"))
        for call, source in calls
    )
    copies = any(evaluator.origin(call.func, source) in _COPIES for call, source in calls)
    return "copy_model" if copies and modules <= _HARMLESS and not starts else UNKNOWN


def _top(module: str) -> str:
    """The package of a module; the bench's own client and tools count as one that trains nothing."""
    return "os" if module.startswith("kev.autorl.") else module.partition(".")[0]


def _settings(made: _Made, evaluator: Evaluator) -> dict[str, str]:
    """The settings in the configuration that the trainer is given; none where that cannot be found."""
    given = [each.value for each in made.call.keywords if each.arg in ("args", "config")]
    if len(given) != 1:
        return {}
    try:
        config, source = evaluator.follow(given[0], made.source)
    except Unknown:
        return {}
    if not isinstance(config, ast.Call):
        return {}
    origin = evaluator.origin(config.func, source) or ""
    name = origin.rpartition(".")[2]
    known = origin.partition(".")[0] in _LIBRARIES and name.endswith(("Config", "Arguments"))
    if not known or evaluator.changes.everything:
        return {}
    found: dict[str, str] = {}
    for key, value in _arguments(config, source, evaluator):
        if key in SETTINGS:
            found[SHORT.get(key, key)] = _text(key, value, source, evaluator)
    order = [SHORT.get(key, key) for key in SETTINGS]
    return dict(sorted(found.items(), key=lambda item: order.index(item[0])))


def _arguments(config: ast.Call, source: Source, evaluator: Evaluator) -> Iterator[tuple[str, ast.expr]]:
    for keyword in config.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value
            continue
        try:
            unpacked, where = evaluator.follow(keyword.value, source)
        except Unknown:
            continue
        if where is not source or (isinstance(unpacked, ast.Dict) and None in unpacked.keys):
            continue
        if isinstance(unpacked, ast.Dict):
            for key, value in zip(unpacked.keys, unpacked.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(unpacked, ast.Call) and getattr(unpacked.func, "id", "") == "dict" and not unpacked.args:
            for each in unpacked.keywords:
                if each.arg is not None:
                    yield each.arg, each.value


def _text(key: str, value: ast.expr, source: Source, evaluator: Evaluator) -> str:
    if key in evaluator.changes.attributes or key in evaluator.changes.keys:
        return UNKNOWN
    try:
        text = number_text(evaluator.value(value, source))
        return text if _WORD.fullmatch(text) else UNKNOWN
    except (Unknown, ValueError, OverflowError):
        return UNKNOWN
