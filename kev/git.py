"""The few things that are asked of git: never a prompt, never a forced push, nothing of the working tree is touched."""

import os
import subprocess
from pathlib import Path

from kev.errors import NotFound, Refused
from kev.text import visible

GIT_SECONDS = 120
LOCK_TRIES = 5
"""Another git of the same checkout holds its index for moments."""


class GitFailed(Refused):
    """Git did not do what was asked."""


def git(root: Path, *arguments: str) -> str:
    """What `git ARGUMENTS` prints. Raises GitFailed with its last line, NotFound where there is no git."""
    environment = os.environ | {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
    }
    command = ["git", "-C", str(root), "--no-pager", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=GIT_SECONDS, check=False,
            env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        raise NotFound("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {arguments[0]}: no answer within {GIT_SECONDS} s") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        # What it says first is the reason; what follows is advice. A refused push names the branch before.
        telling = next((line for line in lines if "rejected]" in line or line.startswith(("fatal:", "error:"))),
                       lines[-1] if lines else "failed")  # fmt: skip
        raise GitFailed(f"git {arguments[0]}: {visible(telling.removeprefix('fatal: ').removeprefix('error: '))}")
    return done.stdout


def is_index_locked(error: GitFailed) -> bool:
    return "index.lock" in str(error) or "Another git process" in str(error)


def is_behind(error: GitFailed) -> bool:
    """Whether a push was refused because the other side has commits that are not here."""
    return "[rejected]" in str(error)


def is_refused(error: GitFailed) -> bool:
    """Whether the other side was reached and did not take a push: it has moved on, or a rule of its own forbids it."""
    return "rejected]" in str(error)


def commit_of(root: Path) -> str | None:
    """What KEV_GIT_COMMIT says, or else the commit that is checked out in `root`; None if nobody tells."""
    told = os.environ.get("KEV_GIT_COMMIT")
    if told:
        return told
    try:
        return git(root, "rev-parse", "HEAD").strip()
    except (GitFailed, NotFound):
        return None


def current_branch(root: Path) -> str | None:
    """The branch; None for a detached HEAD."""
    name = git(root, "rev-parse", "--abbrev-ref", "HEAD").strip()
    return None if name == "HEAD" else name


def remote_of(root: Path, branch: str) -> str | None:
    """The remote that a branch goes to: its own, else `origin`, else the only one; None where there is none."""
    names = git(root, "remote").split()
    try:
        own = git(root, "config", "--get", f"branch.{branch}.remote").strip()
    except GitFailed:
        own = ""
    if own in names:
        return own
    return "origin" if "origin" in names else names[0] if len(names) == 1 else None
