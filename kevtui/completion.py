"""Completion for bash, zsh and fish, made from the parser itself, so that it cannot fall behind it."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kevtui import exit_codes
from kevtui.headless.output import Output

if TYPE_CHECKING:
    from kevtui.cli import Parser

SHELLS: Final = ("bash", "zsh", "fish")
TARGETS: Final = "_targets"
"""The hidden command that the scripts ask for what is in the folder they are used in."""

_STATE_SUFFIX: Final = "-state.json"
_SPEC: Final = re.compile(r"(r[0-9]{1,6})\.json")
_PLAIN: Final = re.compile(r"[\w.+-]+")


@dataclass(frozen=True, slots=True)
class Command:
    """A sub-command as a shell sees it. `words` are what its first argument may be, where that is fixed."""

    name: str
    help: str
    options: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    takes_target: bool


def completion(arguments: argparse.Namespace, parser: "Parser") -> int:
    """Print the script for a shell. Raises OutputLost and OutputEnded."""
    Output(sys.stdout, os.environ).write(script(arguments.shell, list(commands(parser))))
    return exit_codes.FINE


def print_targets() -> int:
    """Print the names of sessions and rounds around this folder, one a line."""
    from kevtui.observe.target import find_root

    found = sorted(targets(find_root(Path.cwd())))
    Output(sys.stdout, os.environ).write("".join(f"{name}\n" for name in found))
    return exit_codes.FINE


def targets(root: Path) -> set[str]:
    """What `kevtui session` may be told under `root`. A name that a shell would have to quote is left out."""
    found = {match[1] for name in _names(root / "experiments" / "rounds") if (match := _SPEC.fullmatch(name))}
    found |= {name.removesuffix(_STATE_SUFFIX) for name in _names(root / "runs") if name.endswith(_STATE_SUFFIX)}
    return {name for name in found if _PLAIN.fullmatch(name)}


def commands(parser: "Parser") -> Iterator[Command]:
    """The sub-commands of `parser`, without hidden ones."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        said = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, sub in action.choices.items():
            if name in said:
                sub.fill()
                yield _command(name, said[name], sub)


def script(shell: str, known: list[Command]) -> str:
    """The completion script of `shell`, one of SHELLS."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](known)


def _command(name: str, said: str, parser: argparse.ArgumentParser) -> Command:
    options: list[tuple[str, str]] = []
    words: tuple[str, ...] = ()
    takes_target = False
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        options += [(option, action.help or "") for option in action.option_strings if option.startswith("--")]
        if not action.option_strings:
            words = words or tuple(str(choice) for choice in action.choices or ())
            takes_target = takes_target or action.dest in ("session", "target")
    return Command(name, said, tuple(options), words, takes_target)


def _bash(known: list[Command]) -> str:
    cases = "".join(
        f'    {item.name}) words="{" ".join((*(option for option, _ in item.options), *item.words))}"'
        f"{'; targets=1' if item.takes_target else ''} ;;\n"
        for item in known
    )
    return (
        '# kevtui completion for bash: eval "$(kevtui completion bash)"\n'
        "_kevtui() {\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" words targets=\n'
        '  if [ "$COMP_CWORD" -eq 1 ]; then\n'
        f'    words="{" ".join(item.name for item in known)} --help --version"\n'
        '  else case "${COMP_WORDS[1]}" in\n'
        f"{cases}"
        "  esac; fi\n"
        f'  [ -n "$targets" ] && [ "${{word#-}}" = "$word" ] && words="$words $(kevtui {TARGETS} 2>/dev/null)"\n'
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))\n'
        "}\n"
        "complete -o default -F _kevtui kevtui\n"
    )


def _zsh(known: list[Command]) -> str:
    names = "\n".join(f"    {_quoted(f'{item.name}:{item.help}')}" for item in known)
    cases = "".join(
        f"    {item.name})\n      choices=({' '.join(_quoted(f'{option}:{said}') for option, said in item.options)}"
        f"{''.join(f' {word}' for word in item.words)})\n"
        + (f'      choices+=(${{(f)"$(kevtui {TARGETS} 2>/dev/null)"}})\n' if item.takes_target else "")
        + "      ;;\n"
        for item in known
    )
    return (
        "#compdef kevtui\n"
        '# kevtui completion for zsh: eval "$(kevtui completion zsh)", after compinit\n'
        "_kevtui() {\n  local -a choices\n  if (( CURRENT == 2 )); then\n    choices=(\n"
        f"{names}\n    )\n    _describe command choices\n    return\n  fi\n  case $words[2] in\n{cases}  esac\n"
        "  _describe argument choices || _files\n}\n"
        "compdef _kevtui kevtui\n"
    )


def _fish(known: list[Command]) -> str:
    lines = ["# kevtui completion for fish: kevtui completion fish | source"]
    for item in known:
        lines.append(f"complete -c kevtui -n __fish_use_subcommand -a {item.name} -d {_fish_quoted(item.help)}")
        seen = f"-n '__fish_seen_subcommand_from {item.name}'"
        lines += [
            f"complete -c kevtui {seen} -l {option.removeprefix('--')} -d {_fish_quoted(said)}"
            for option, said in item.options
        ]
        if item.words:
            lines.append(f"complete -c kevtui {seen} -a '{' '.join(item.words)}'")
        if item.takes_target:
            lines.append(f"complete -c kevtui {seen} -a '(kevtui {TARGETS} 2>/dev/null)'")
    return "\n".join(lines) + "\n"


def _quoted(words: str) -> str:
    return "'" + words.replace("'", "'\\''") + "'"


def _fish_quoted(words: str) -> str:
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []
