"""The user's own settings: `$XDG_CONFIG_HOME/kevtui/config.toml`, which need not be there.

theme = "deuteranopia"
ascii = true

[keys]
quit = "ctrl+q"
sort = ["s", "f2"]
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev.errors import UsageError
from kevtui.keymap import BINDINGS, BadKeymap, Binding, remap


class BadSettings(UsageError):
    """The file cannot be meant; `lines` has a line for each mistake."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Settings:
    theme: str | None = None
    ascii: bool = False
    bindings: tuple[Binding, ...] = BINDINGS


def settings_path(environment: Mapping[str, str]) -> Path:
    """Where the file would be."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "kevtui" / "config.toml"


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """What the file says. Raises BadSettings with a line for each mistake, naming file and key."""
    path = settings_path(environment)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except OSError as error:
        raise BadSettings([f"{path}: cannot be read ({error.strerror})"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings([f"{path}: is no TOML: {error}"]) from None
    problems = list(_problems(values))
    bindings = BINDINGS
    if not problems and "keys" in values:
        try:
            bindings = remap(values["keys"])
        except BadKeymap as error:
            problems.append(str(error))
    if problems:
        raise BadSettings([f"{path}: {problem}" for problem in problems])
    return Settings(values.get("theme"), values.get("ascii", False), bindings)


def _problems(values: dict[str, Any]) -> list[str]:
    found = [
        f"{key}: no such setting; there are theme, ascii and keys" for key in values.keys() - {"theme", "ascii", "keys"}
    ]
    if not isinstance(values.get("theme", ""), str):
        found.append('theme: should be the name of a theme, such as "light"')
    if not isinstance(values.get("ascii", False), bool):
        found.append("ascii: should be true or false")
    keys = values.get("keys", {})
    if not isinstance(keys, dict):
        return [*found, 'keys: should be a table of id = "key"']
    for name, value in keys.items():
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(key, str) and key.strip() for key in listed):
            found.append(f'keys.{name}: should be a key, such as "ctrl+q", or a list of keys')
    return sorted(found)
