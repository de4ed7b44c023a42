"""When a round was registered: the commit that first held both its spec and its section of the plan document.

Read from git. Results and the choice of a candidate are written into the same section later, so a change after the
registration is told, with both times, and not forbidden.
"""

import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kev.errors import KevError, NotFound, Refused
from kev.files import parse_json, read_bytes
from kev.text import lines_of

PLAN_DOCUMENT = "PLAN.md"
GIT_SECONDS = 60


_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")


@dataclass(frozen=True, slots=True)
class Change:
    """Something of a registration that is no longer as it was. `at` is None for a change nobody has committed."""

    what: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Registration:
    """The commit a round was registered by."""

    commit: str
    at: datetime
    section: str
    """The heading of its section."""
    changes: tuple[Change, ...]
    """What was changed afterwards: the last change of the spec, and that of the section."""


def registration(spec_path: Path, root: Path) -> Registration:
    """The registration of the round in `spec_path`.

    Raises Refused, with what is lacking, for a round that is not registered; NotFound or DamagedFile for its spec.
    """
    spec_path, root = spec_path.resolve(), root.resolve()
    document, number = _registered_at(spec_path)
    try:
        spec_name = spec_path.relative_to(root).as_posix()
    except ValueError:
        raise Refused(f"{spec_path}: not registered: it lies outside {root}") from None
    history = _history(root, [spec_name, document])
    if not history:
        raise Refused(f"{spec_name}: not registered: no commit holds it; commit it together with {document}")
    contents = _contents(root, [f"{commit}:./{name}" for commit, _ in history for name in (spec_name, document)])
    versions = [
        (commit, at, contents[2 * index], _section(contents[2 * index + 1], number))
        for index, (commit, at) in enumerate(history)
    ]
    for index, (commit, at, spec, section) in enumerate(versions):
        if spec is not None and section is not None:
            now = (_read(spec_path), _section(_read(root / document), number))
            after = [(at, spec, section) for _, at, spec, section in versions[index + 1 :]]
            return Registration(commit, at, lines_of(section)[0].lstrip("# "), _changes((spec, section), after, now))
    lacking = (
        "the spec" if all(spec is None for _, _, spec, _ in versions) else f"a section on round {number} in {document}"
    )
    raise Refused(f"{spec_name}: not registered: no commit holds {lacking}")


def find_section(text: str, number: int) -> str | None:
    """What a plan document says on a round: from each heading that names it to the next one of its level or above.

    None if no heading names the round. A line that looks like a heading inside a fenced block is none.
    """
    named = re.compile(rf"\bround\s+{number}\b", re.IGNORECASE)
    kept: list[str] = []
    level = 0  # of the heading that named the round; 0 outside its section
    fenced = False
    for line in lines_of(text):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = None if fenced else _HEADING.fullmatch(line.rstrip())
        if heading is not None and (level == 0 or len(heading[1]) <= level):
            level = len(heading[1]) if named.search(heading[2]) else 0
        if level:
            kept.append(line)
    # The blank lines at its end belong to whatever follows.
    return "\n".join(kept).rstrip() if kept else None


def plan_document(registered: str) -> str:
    """The document that a spec's `registered` names: what stands before its first `>`."""
    name = registered.partition(">")[0].strip()
    return name if name.endswith(".md") and not name.startswith("/") and ".." not in name else PLAN_DOCUMENT


def _registered_at(spec_path: Path) -> tuple[str, int]:
    try:
        value = parse_json(read_bytes(spec_path))
    except ValueError as error:
        raise Refused(f"{spec_path}: {error}") from None
    number = value.get("round") if isinstance(value, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise Refused(f"{spec_path}: not registered: it names no round")
    registered = value.get("registered")
    return plan_document(registered if isinstance(registered, str) else ""), number


def _changes(
    registered: tuple[str, str],
    after: list[tuple[datetime, str | None, str | None]],
    now: tuple[str | None, str | None],
) -> tuple[Change, ...]:
    changes = []
    for index, what in enumerate(("spec", "section")):
        last, when = _plain(registered[index]), None
        for at, *contents in after:
            if _plain(contents[index]) != last:
                last, when = _plain(contents[index]), at
        if _plain(now[index]) != last:
            changes.append(Change(what, None))
        elif when is not None:
            changes.append(Change(what, when))
    return tuple(changes)


def _plain(text: str | None) -> str | None:
    """`text` without what a checkout or an editor does to line ends, which changes nothing that was registered."""
    return None if text is None else "\n".join(lines_of(text))


def _section(text: str | None, number: int) -> str | None:
    return None if text is None else find_section(text, number)


def _read(path: Path) -> str | None:
    try:
        return read_bytes(path).decode(errors="replace")
    except KevError:
        return None


def _history(root: Path, names: list[str]) -> list[tuple[str, datetime]]:
    """The commits that touched any of `names`, oldest first."""
    lines = _git(root, "log", "--reverse", "--format=%H %ct", "--", *names).decode().splitlines()
    pairs = [line.split() for line in lines]
    return [(commit, datetime.fromtimestamp(int(seconds), UTC)) for commit, seconds in pairs]


def _contents(root: Path, names: list[str]) -> list[str | None]:
    """The text of each `<commit>:./<path>`, None where that commit has no such file; one process for all of them."""
    data = _git(root, "cat-file", "--batch", standard_input="".join(f"{name}\n" for name in names).encode())
    found: list[str | None] = []
    position = 0
    for _ in names:
        end = data.index(b"\n", position)
        header = data[position:end].split(b" ")
        position = end + 1
        if len(header) == 3 and header[1] == b"blob":
            size = int(header[2])
            found.append(data[position : position + size].decode(errors="replace"))
            position += size + 1
        else:
            found.append(None)
    return found


def _git(root: Path, *arguments: str, standard_input: bytes = b"") -> bytes:
    command = ["git", "-C", str(root), "--no-pager", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, input=standard_input, capture_output=True, timeout=GIT_SECONDS, check=False)
    except FileNotFoundError:
        raise NotFound("git is not installed; the time of registration is read from it") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"{root}: git did not answer within {GIT_SECONDS} s") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise Refused(f"{root}: not registered: {words[-1].removeprefix('fatal: ') if words else 'git failed'}")
    return done.stdout
