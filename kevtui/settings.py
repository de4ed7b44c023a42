"""The user's own settings: `$XDG_CONFIG_HOME/kevtui/config.toml`, which need not be there.

theme = "deuteranopia"
ascii = true
read_only = false
undo_window_s = 5
name_above_usd = 20

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
from kevtui.actions.verbs import NAME_ABOVE_USD
from kevtui.keymap import BINDINGS, BadKeymap, Binding, remap

KNOWN = ("theme", "ascii", "read_only", "undo_window_s", "name_above_usd", "keys")
LARGEST = 1_000_000
UNDO_WINDOW_S = 5.0


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
    read_only: bool = False
    undo_window_s: float = UNDO_WINDOW_S
    """Seconds in which what spends can be taken back after it was confirmed."""
    name_above_usd: float = NAME_ABOVE_USD
    """From this bound on an action is confirmed by typing the name of its target."""


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
    return Settings(
        values.get("theme"),
        values.get("ascii", False),
        bindings,
        values.get("read_only", False),
        float(values.get("undo_window_s", UNDO_WINDOW_S)),
        float(values.get("name_above_usd", NAME_ABOVE_USD)),
    )


def _problems(values: dict[str, Any]) -> list[str]:
    found = [f"{key}: no such setting; there are {', '.join(KNOWN)}" for key in values.keys() - set(KNOWN)]
    if not isinstance(values.get("theme", ""), str):
        found.append('theme: should be the name of a theme, such as "light"')
    found += [
        f"{name}: should be true or false"
        for name in ("ascii", "read_only")
        if not isinstance(values.get(name, False), bool)
    ]
    for name in ("undo_window_s", "name_above_usd"):
        value = values.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
            found.append(f"{name}: should be a number from 0 to {LARGEST:,}")
    keys = values.get("keys", {})
    if not isinstance(keys, dict):
        return [*found, 'keys: should be a table of id = "key"']
    for name, value in keys.items():
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(key, str) and key.strip() for key in listed):
            found.append(f'keys.{name}: should be a key, such as "ctrl+q", or a list of keys')
    return sorted(found)
