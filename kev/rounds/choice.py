"""The choice of a candidate, written into PLAN.md and committed before any confirmation read.

A line of the round's own section that begins with the word "Candidate" and names the arm is the choice:

    - Candidate (9b): `9b-joint-lr2e5`

It is looked for in the commit at HEAD, not in the working tree: what is not committed has no time.
"""

import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from kev.errors import KevError

PLAN = "PLAN.md"

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_CHOICE = re.compile(r"[\W_]*candidates?\b(.*)", re.IGNORECASE)


def choice_problem(root: Path, round_number: int, arm: str, rivals: Collection[str]) -> str | None:
    """Why the committed plan does not name `arm`, rather than one of its `rivals`, as candidate; None if it does."""
    plan = committed_text(root, PLAN)
    wanted = f"write the line 'Candidate: {arm}' in the section of round {round_number} and commit it"
    if plan is None:
        return f"{PLAN} is not in the commit at HEAD of {root}; {wanted}"
    section = round_section(plan, round_number)
    if section is None:
        return f"{PLAN} at HEAD has no section for round {round_number}; {wanted}"
    return None if names_candidate(section, arm, rivals) else f"{PLAN} at HEAD does not choose {arm}; {wanted}"


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


def round_section(plan: str, round_number: int) -> str | None:
    """The text under the headings that name the round, down to the next heading of the same or a higher level."""
    named = re.compile(rf"\bround\s+{round_number}\b", re.IGNORECASE)
    kept: list[str] = []
    depth = None
    fenced = False
    for line in plan.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = None if fenced else _HEADING.fullmatch(line.rstrip())
        if heading is not None:
            level = len(heading[1])
            if depth is None or level <= depth:
                depth = level if named.search(heading[2]) else None
        if depth is not None:
            kept.append(line)
    return "\n".join(kept) if kept else None


def names_candidate(section: str, arm: str, rivals: Collection[str]) -> bool:
    """Whether some line of `section` begins with "Candidate" and names `arm`, as a word of its own.

    A line that also names one of its `rivals` lists what could be chosen, and chooses nothing.
    """
    choices = [choice[1] for line in section.splitlines() if (choice := _CHOICE.match(line)) is not None]
    return any(_names(line, arm) and not any(_names(line, rival) for rival in rivals) for line in choices)


def _names(line: str, arm: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(arm)}(?![\w-]|\.\w)", line) is not None
