"""What the argument of `kevtui session` means: a round, a session, or everything under one runs/ folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from kev import files
from kev.errors import DamagedFile, NotFound, UsageError
from kev.text import shorten, visible

STATE_SUFFIX = "-state.json"
SPAWN_SUFFIX = ".spawn.json"
_ROUND = re.compile(r"r?0*([0-9]{1,6})(?:\.json)?")
_SPEC_NAME = re.compile(r"r0*([0-9]{1,6})\.json")
_MARKS = ("experiments/rounds", "runs", ".git")
MOST_PEEKED = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """`spec` and `state` may name damaged files; whether they can be read is the observer's business.

    With neither a session nor a round, every study found under runs/ is meant.
    """

    root: Path
    title: str
    spec: Path | None
    state: Path | None
    session: str | None
    round: int | None
    untaken: tuple[str, ...] = ()
    """Names of the sessions of which none was taken, because there are several."""


def resolve(argument: str, *, root: Path | None, cwd: Path) -> Target:
    """The target that `argument` names, looked for as a path from `cwd`, then by its name under the root.

    The root is `root`, else the checkout around the named file, else the one around `cwd`.
    Raises NotFound or UsageError with one line.
    """
    if not argument or "\0" in argument:
        raise UsageError("name a round (r27), a session (night3), a spec or state file, or a folder holding runs/")
    if root is not None and not _is_directory(root):
        raise NotFound(f"{root}: no such folder; --root takes the folder that holds runs/ and experiments/")
    home = (root or find_root(cwd)).absolute()
    # A root that was named is where a relative place is looked for first: `.` is then the root itself.
    for path in (home / argument, cwd / argument) if root is not None else (cwd / argument, home / argument):
        if _is_directory(path):
            return _everything(_root_of_folder(path.resolve()))
        if _is_file(path):
            return _named_file(path.absolute(), root=home if root else None)
    if "/" in argument:
        raise NotFound(f"{visible(argument)}: no such file or folder from {cwd}" + (f" or {home}" if root else ""))
    return _by_name(argument, home)


def find_root(start: Path) -> Path:
    """The nearest folder at or above `start` that looks like a checkout, else `start` itself."""
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        if any(_kind(candidate / mark) is not None for mark in _MARKS):
            return candidate
    return folder


def find_session_of(root: Path, studies: Iterable[str]) -> Path | None:
    """The one state file under `root` that lists any of `studies`; None where none or several do."""
    wanted = set(studies)
    listing = [path for path in _states(root).values() if wanted & set(_studies_in(path))]
    return listing[0] if len(listing) == 1 else None


def look_again(target: Target) -> Target:
    """`target`, or if it is a round whose session is not known, the same with the one that was opened for it since."""
    return target if target.spec is None or target.state is not None else _round(target.spec, target.root)


def _by_name(argument: str, root: Path) -> Target:
    specs, states = _specs(root), _states(root)
    number = _ROUND.fullmatch(argument)
    if number and int(number.group(1)) in specs:
        return _round(specs[int(number.group(1))], root)
    name = argument.removesuffix(STATE_SUFFIX)
    if name in states:
        return _session(states[name], root)
    starting = sorted(known for known in states if known.startswith(name))
    if len(starting) > 1:
        raise UsageError(f"{visible(argument)} may be any of the sessions {_listed(starting)}; name one")
    if starting:
        return _session(states[starting[0]], root)
    if _is_file(root / "runs" / f"{name}{SPAWN_SUFFIX}"):
        raise UsageError(f"{visible(argument)} is a study; name its round or session, or . for everything in {root}")
    raise NotFound(_nothing_named(argument, root, specs, states))


def _nothing_named(argument: str, root: Path, specs: dict[int, Path], states: dict[str, Path]) -> str:
    number = _ROUND.fullmatch(argument)
    if number and argument.startswith("r"):
        sought = f"no {_spec_name(argument)} in {root / 'experiments/rounds'} and no {argument}{STATE_SUFFIX} in runs/"
    elif number:
        sought = f"no r{int(number.group(1))}.json in {root / 'experiments/rounds'}"
    else:
        sought = f"no session {visible(argument)} ({visible(argument)}{STATE_SUFFIX}) in {root / 'runs'}"
    for folder in (root / "runs", root / "experiments" / "rounds"):
        if (problem := _unlisted(folder)) is not None:
            return f"{shorten(sought, 400)} that is seen: {problem}; put that right"
    known = [*(f"r{number}" for number in sorted(specs, reverse=True)), *sorted(states)]
    from difflib import get_close_matches

    near = get_close_matches(argument.removesuffix(".json").removesuffix("-state"), known, n=4, cutoff=0.5) or known[:4]
    if near:
        return f"{shorten(sought, 400)}; did you mean {_listed(near, 'or')}?"
    return f"{shorten(sought, 400)}; --root names the folder that holds runs/ and experiments/"


def _spec_name(argument: str) -> str:
    return argument if argument.endswith(".json") else f"{argument}.json"


def _named_file(path: Path, *, root: Path | None) -> Target:
    home = root or find_root(path.parent)
    if path.name.endswith(STATE_SUFFIX):
        return _session(path, home)
    if _SPEC_NAME.fullmatch(path.name):
        return _round(path, home)
    value = _peek(path)
    if {"arms", "rule"} <= value.keys():
        return _round(path, home)
    if value.keys() & {"authorization", "authorization_usd", "modal_metered_usd", "baseline_usd"}:
        return _session(path, home)
    neither = f"{path}: neither a round spec nor a session state file"
    if path.suffix == ".zip":
        raise UsageError(f"{neither}; a night that kevtui record made opens with kevtui replay and kevtui session")
    try:
        files.read_json(path, limit=MOST_PEEKED)
    except DamagedFile as error:
        neither = f"{neither} that can be read ({error.reason})"
    except NotFound:
        pass
    raise UsageError(f"{neither}; name one of those, or a folder")


def _round(path: Path, root: Path) -> Target:
    value = _peek(path)
    match = _SPEC_NAME.fullmatch(path.name)
    number = value.get("round")
    if not isinstance(number, int):
        number = int(match.group(1)) if match else None
    studies = value.get("studies")
    state = _opened_for(path, root) or (find_session_of(root, studies) if isinstance(studies, dict) else None)
    session = _session_name(state) if state else None
    name = f"r{number}" if number is not None else path.stem
    title = f"{name} · {session}" if session else name
    return Target(root=root, title=title, spec=path, state=state, session=session, round=number)


def _opened_for(spec: Path, root: Path) -> Path | None:
    """The one session that was opened for a round, which need not have launched anything yet."""
    opened = []
    for state in _states(root).values():
        rounds = _peek(state).get("rounds")
        named = [root / each for each in rounds if isinstance(each, str)] if isinstance(rounds, list) else []
        opened += [state] if spec in named else []
    return opened[0] if len(opened) == 1 else None


def _session(path: Path, root: Path) -> Target:
    name = _session_name(path)
    return Target(root=root, title=name, spec=None, state=path, session=name, round=None)


def _everything(root: Path) -> Target:
    states = _states(root)
    # Which of several authorizations governs the spend cannot be guessed, so none is taken.
    state = next(iter(states.values())) if len(states) == 1 else None
    untaken = tuple(states) if len(states) > 1 else ()
    title = root.name or str(root)
    return Target(root=root, title=title, spec=None, state=state, session=None, round=None, untaken=untaken)


def _root_of_folder(folder: Path) -> Path:
    if folder.name == "runs":
        return folder.parent
    if _is_directory(folder / "runs") or _is_directory(folder / "experiments" / "rounds"):
        return folder
    around = find_root(folder)
    if around != folder and _is_directory(around / "runs"):
        return around
    raise NotFound(f"{folder}: holds neither runs/ nor experiments/rounds/; name the folder that does")


def _session_name(path: Path) -> str:
    return path.name.removesuffix(STATE_SUFFIX) if path.name.endswith(STATE_SUFFIX) else path.stem


def _specs(root: Path) -> dict[int, Path]:
    found = {}
    for name in _names(root / "experiments" / "rounds"):
        if match := _SPEC_NAME.fullmatch(name):
            found[int(match.group(1))] = root / "experiments" / "rounds" / name
    return found


def _states(root: Path) -> dict[str, Path]:
    names = [name for name in _names(root / "runs") if name.endswith(STATE_SUFFIX) and not name.startswith(".")]
    return {name.removesuffix(STATE_SUFFIX): root / "runs" / name for name in names}


def _studies_in(state: Path) -> list[str]:
    studies = _peek(state).get("studies")
    return list(studies) if isinstance(studies, dict) else []


def _peek(path: Path) -> dict[str, Any]:
    try:
        value = files.read_json(path, limit=MOST_PEEKED)
    except (DamagedFile, NotFound):
        return {}
    return value if isinstance(value, dict) else {}


def _unlisted(folder: Path) -> str | None:
    """Why it cannot be told what is in a folder that is there."""
    try:
        files.list_names(folder)
    except DamagedFile as error:
        return str(error)
    return None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _listed(names: list[str], last: str = "and") -> str:
    safe = [visible(name) for name in names[:6]]
    return safe[0] if len(safe) == 1 else f"{', '.join(safe[:-1])} {last} {safe[-1]}"


def _kind(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return None


def _is_file(path: Path) -> bool:
    mode = _kind(path)
    return mode is not None and S_ISREG(mode)


def _is_directory(path: Path) -> bool:
    mode = _kind(path)
    return mode is not None and S_ISDIR(mode)
