"""A test partition is read at a registered stage, and nowhere else but by its owner's word.

The rows of a registered read go to a directory that its spec names; a read into another directory is none of it.
"""

import posixpath
from collections.abc import Iterator
from pathlib import Path

from kev.errors import KevError, Refused
from kev.records.spec import RoundSpec
from kev.rounds.checks.reads import read_split
from kev.rounds.guards import confirmation_problems
from kev.rounds.read_orders import wanted_directories
from kev.rounds.registration import registration
from kev.rounds.sides import candidate_side, parent_side
from kev.rounds.specs import load_spec


def check_test_read(root: Path, directory: str, *, owner_allows: str = "") -> None:
    """Raises Refused unless the test read that fills `directory` (relative to `root`) may be made now.

    It may where a registered round has it: at its rule, or at a confirmation stage that may be read now. The owner's
    word is the name of the directory, repeated.
    """
    name = posixpath.basename(directory.rstrip("/"))
    if owner_allows and name in owner_allows.split(","):
        return
    problems: list[str] = []
    for spec, stage, arm in _registered(root, directory):
        try:
            found = confirmation_problems(spec, root, stage, arm) if stage is not None else []
        except KevError as error:
            found = [str(error)]
        if not found:
            return
        problems += [f"round {spec.round}, stage {stage}: {problem}" for problem in found]
    why = "; ".join(problems) or "no registered round reads a test into that directory"
    raise Refused(
        f"{directory}: a test is read at a registered stage alone: {why}. "
        "`python -m kev.rounds launch-reads SPEC --stage NAME` reads it; outside a round its owner says "
        f"--owner-allows {name}"
    )


def relative_to_here(directory: Path) -> str:
    """The path of a read's directory as a spec of this checkout would name it."""
    absolute, here = directory.absolute(), Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else str(absolute)


def _registered(root: Path, directory: str) -> Iterator[tuple[RoundSpec, str | None, str]]:
    """(spec, stage or None for the rule, arm) of every registered read of a test that fills `directory`."""
    for path in sorted((root / "experiments" / "rounds").glob("r*.json")):
        try:
            spec = load_spec(path, root).spec
            if spec.archive is not None:
                continue
            registration(path, root)
        except KevError:
            continue
        for stage, at in ((None, None), *spec.confirm.items()):
            for arm in spec.arms:
                if spec.arms[arm].parent not in spec.parents:
                    continue
                for side in (candidate_side(spec, arm, at), parent_side(spec, arm, at)):
                    for tag, where in wanted_directories(spec, side, at):
                        own = posixpath.dirname(where) if spec.reads[tag].entrypoint == "locked_test" else where
                        if own == directory.rstrip("/") and read_split(spec.reads[tag]) == "test":
                            yield spec, stage, arm
