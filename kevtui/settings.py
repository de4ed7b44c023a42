"""The user's own settings: `$XDG_CONFIG_HOME/kevtui/config.toml`, which need not be there.

FIELDS is the whole file: what is checked, what comes without it, and the table in docs/settings.md, which
`python -m kevtui.settings` prints.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kev.errors import DamagedFile, NotFound, UsageError
from kev.toml_values import read_toml
from kevtui import columns
from kevtui.actions.verbs import NAME_ABOVE_USD
from kevtui.alerting import choices
from kevtui.alerting.choices import Choices
from kevtui.keymap import BINDINGS, BadKeymap, Binding, remap

LARGEST = 1_000_000
UNDO_WINDOW_S = 5.0


class BadSettings(UsageError):
    """The file cannot be meant; `lines` has a line for each mistake."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self._lines = tuple(lines)

    @property
    def lines(self) -> Sequence[str]:
        return self._lines


@dataclass(frozen=True, slots=True)
class Settings:
    theme: str | None = None
    ascii: bool = False
    bindings: tuple[Binding, ...] = BINDINGS
    read_only: bool = False
    undo_window_s: float = UNDO_WINDOW_S
    """Seconds in which what spends can be taken back after it was confirmed."""
    name_above_usd: float = NAME_ABOVE_USD
    """From this bound on an action is confirmed by typing the name of its target."""
    alerts: Choices = choices.AS_IT_COMES
    """What is told of alerts beyond the screen."""
    columns: tuple[str, ...] = columns.EVERY
    """Ids of the columns of the studies; see kevtui.columns."""


class Field(NamedTuple):
    """One setting of the file."""

    name: str
    kind: str
    default: str
    text: str
    problems: Callable[[str, object], Iterable[str]]
    """A line for each mistake in the value of a setting of that name."""


def settings_path(environment: Mapping[str, str]) -> Path:
    """Where the file would be."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "kevtui" / "config.toml"


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """What the file says. Raises BadSettings with a line for each mistake, naming file and key."""
    path = settings_path(environment)
    try:
        values = read_toml(path)
    except NotFound:
        return Settings()
    except DamagedFile as error:
        raise BadSettings([str(error)]) from None
    problems = sorted(_problems(values))
    bindings = BINDINGS
    if not problems and "keys" in values:
        try:
            bindings = remap(values["keys"])
        except BadKeymap as error:
            problems.append(str(error))
    if problems:
        raise BadSettings([f"{path}: {problem}" for problem in problems])
    return Settings(
        theme=values.get("theme"),
        ascii=values.get("ascii", False),
        bindings=bindings,
        read_only=values.get("read_only", False),
        undo_window_s=float(values.get("undo_window_s", UNDO_WINDOW_S)),
        name_above_usd=float(values.get("name_above_usd", NAME_ABOVE_USD)),
        columns=columns.chosen(values.get("columns", columns.EVERY)),
        alerts=choices.read_choices(values.get("alerts", {})),
    )


# -------------------------------------------------------------------------------------------------------- the fields


def _problems(values: dict[str, Any]) -> Iterator[str]:
    known = {field.name: field for field in FIELDS}
    for name, value in values.items():
        if name in known:
            yield from known[name].problems(name, value)
        else:
            yield f"{name}: no such setting; there are {', '.join(known)}"


def _theme(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f'{name}: should be the name of a theme, such as "light"'


def _flag(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"{name}: should be true or false"


def _number(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        yield f"{name}: should be a number from 0 to {LARGEST:,}"


def _columns(name: str, value: object) -> Iterator[str]:
    if wrong := columns.wrong_with(value):
        yield f"{name}: {wrong}"


def _alerts(_: str, value: object) -> Iterator[str]:
    return choices.problems(value)


def _keys(name: str, keys: object) -> Iterator[str]:
    if not isinstance(keys, dict):
        yield f'{name}: should be a table of id = "key"'
        return
    for each, value in keys.items():
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(key, str) and key.strip() for key in listed):
            yield f'{name}.{each}: should be a key, such as "ctrl+q", or a list of keys'


FIELDS: Final = (
    Field("theme", "text", '"default"', "colours: a theme of the package, or a file of your own without its `.toml`",
          _theme),
    Field("ascii", "true or false", "false", "use no character outside ASCII", _flag),
    Field("read_only", "true or false", "false", "nothing can be changed from here", _flag),
    Field("undo_window_s", "number", f"{UNDO_WINDOW_S:g}",
          "seconds in which what spends can be taken back on the dashboard; 0 for none", _number),
    Field("name_above_usd", "number", f"{NAME_ABOVE_USD:g}",
          "from this bound on the target's name is typed to confirm", _number),
    Field("columns", "list of ids", "all of them",
          "columns of the studies in their order; narrow screens show fewer of them", _columns),
    Field("alerts", "table", "the bell alone", "what is told of alerts beyond the screen, below", _alerts),
    Field("keys", "table", "as `?` lists them", "other keys for the ids of bindings: `quit = \"ctrl+q\"`, "
          "`sort = [\"s\", \"f2\"]`", _keys),
)  # fmt: skip
"""Every setting there is."""


def markdown() -> str:
    """The settings as docs/settings.md shows them."""
    rows = ["| setting | value | without it | what it does |", "| --- | --- | --- | --- |"]
    rows += [f"| `{field.name}` | {field.kind} | {_code(field.default)} | {field.text} |" for field in FIELDS]
    return "\n".join(rows) + "\n"


def alerts_markdown() -> str:
    """The settings under `[alerts]` as docs/settings.md shows them."""
    rows = ["| setting | value | without it | what it does |", "| --- | --- | --- | --- |"]
    rows += [f"| `{name}` | {kind} | {_code(default)} | {text} |" for name, kind, default, text in choices.FIELDS]
    return "\n".join(rows) + "\n"


def columns_markdown() -> str:
    """The columns as docs/settings.md shows them, those that stay longest first."""
    rows = ["| column | what it shows |", "| --- | --- |"]
    rows += [f"| `{name}` | {columns.ABOUT[name]} |" for name in columns.LONGEST_FIRST]
    return "\n".join(rows) + "\n"


def _code(words: str) -> str:
    return words if " " in words else f"`{words}`"


if __name__ == "__main__":
    from kev.console import run

    raise SystemExit(run(lambda: print(markdown(), alerts_markdown(), columns_markdown(), sep="\n") or 0))
