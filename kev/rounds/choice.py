"""The choice of a candidate, written into the plan document and committed before any confirmation read.

A line of the round's own section that begins with the word "Candidate" and names the arm is the choice:

    - Candidate (9b): `9b-joint-lr2e5`

It is looked for in the commit at HEAD, not in the working tree: what is not committed has no time.
"""

import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from kev.errors import KevError
from kev.records.spec import RoundSpec, size_of
from kev.rounds.registration import find_section, plan_document
from kev.text import lines_of

_CHOICE = re.compile(r"[\W_]*candidates?\b(.*)", re.IGNORECASE)


def choice_problem(root: Path, spec: RoundSpec, arm: str) -> str | None:
    """Why the committed plan does not name `arm`, and no rival of its size, as candidate; None if it does."""
    document = plan_document(spec.registered)
    plan = committed_text(root, document)
    wanted = f"write the line 'Candidate: {arm}' in the section of round {spec.round} and commit it"
    if plan is None:
        return f"{document} is not in the commit at HEAD of {root}; {wanted}"
    section = find_section(plan, spec.round)
    if section is None:
        return f"{document} at HEAD has no section for round {spec.round}; {wanted}"
    rivals = [other for other in spec.arms if other != arm and size_of(other) == size_of(arm)]
    return None if names_candidate(section, arm, rivals) else f"{document} at HEAD does not choose {arm}; {wanted}"


def committed_text(root: Path, path: str) -> str | None:
    """The text of `path`, relative to `root`, in the commit at HEAD; None if it is not there, or there is no commit.

    Raises KevError if git cannot be run.
    """
    command = ["git", "-C", str(root), "show", f"HEAD:./{path}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KevError(f"git show HEAD:./{path}: {error}") from None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def names_candidate(section: str, arm: str, rivals: Collection[str]) -> bool:
    """Whether some line of `section` begins with "Candidate" and names `arm`, as a word of its own.

    A line that also names one of its `rivals` lists what could be chosen, and chooses nothing.
    """
    choices = [choice[1] for line in lines_of(section) if (choice := _CHOICE.match(line)) is not None]
    return any(_names(line, arm) and not any(_names(line, rival) for rival in rivals) for line in choices)


def _names(line: str, arm: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(arm)}(?![\w-]|\.\w)", line) is not None
