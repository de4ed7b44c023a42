"""`python -m kev.session commit`: put the record of a session into git, and push it where a remote is set.

Only what is on the lists below is ever added, by force, since `runs/` is ignored: the state and the journal, the plan,
read-outs, verdicts and reports. Prediction dumps, rows and weights are on no list. Other staged changes are left out
of the commit. A push is never forced: where the branch has moved on, or takes nothing, the commits go to one beside it.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from kev import files
from kev.console import failures_of_files
from kev.errors import Refused
from kev.git import (
    LOCK_TRIES,
    GitFailed,
    current_branch,
    git,
    is_behind,
    is_index_locked,
    is_refused,
    remote_of,
)
from kev.ledger.book import Ledger
from kev.session.desk import add_place, answer
from kev.session.find import find_state
from kev.session.journal import events_path
from kev.session.plan_document import PLAN
from kev.session.view import read_session, session_name

OF_STUDY = frozenset({"results.jsonl", "report.json", "usage.json", "summary.json", "manifest.json"})
OF_TRIAL = frozenset(
    {"result.json", "comparison.json", "provenance.json", "train.log", "summary.json", "report.json"}
)  # fmt: skip
LARGEST = 10 * 1024 * 1024
"""Bytes of a file that git may keep."""

PUSH_PAUSES_S = (2.0, 10.0)
"""Between one try to push and the next."""

MAIN = frozenset({"main", "master"})

NOT_PUSHED = 3
"""Exit code where everything is committed and nothing could be pushed."""


@dataclass
class Committed:
    """What came of it."""

    commit: str | None = None
    paths: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Files that are too large for git."""
    pushed_to: str | None = None
    problem: str = ""
    """Why nothing was pushed, where a remote is set, or why it went to a branch beside."""
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"commit": self.commit, "paths": self.paths, "left_out": self.left_out, "pushed_to": self.pushed_to,
                "problem": self.problem, "advice": self.advice}  # fmt: skip


def paths_of(root: Path, state: Path) -> tuple[list[str], list[str]]:
    """The files of a session that git keeps, relative to the checkout, and those that are too large for it.

    Raises NotFound or DamagedFile for a state or a ledger that cannot be believed: a damaged record is not committed
    over a good one.
    """
    session = read_session(state)
    units = [unit for unit in Ledger(state.parent).read().by_id.values() if unit.order.session == session.name]
    rounds = {unit.order.round for unit in units if unit.order.round is not None}
    rounds |= {int(stem[1:]) for spec in session.rounds
               if (stem := PurePosixPath(spec).stem).startswith("r") and stem[1:].isdecimal()}  # fmt: skip
    names = {unit.order.name for unit in units if unit.order.kind in ("trial", "read", "locked")}
    names |= {work.name for work in (*session.studies, *session.reads)}
    found = [PLAN, f"runs/{state.name}", f"runs/{events_path(state).name}", "runs/autoresearch-sessions.jsonl"]
    for number in sorted(rounds):
        found += _json_in(root, f"runs/r{number}-readout") + _json_in(root, f"runs/r{number}-verdict")
    for name in sorted(names):
        found += _of_work(root, f"runs/{name}")
    there = [path for path in dict.fromkeys(found) if (root / path).is_file() and not (root / path).is_symlink()]
    large = [path for path in there if (root / path).stat().st_size > LARGEST]
    return [path for path in there if path not in large], large


def _json_in(root: Path, directory: str) -> list[str]:
    return [f"{directory}/{name}" for name in files.list_names(root / directory)
            if name.endswith(".json") and not name.startswith(".")]  # fmt: skip


def _of_work(root: Path, directory: str) -> Iterable[str]:
    """What git keeps of a study or a read: its own figures, and those of each trial or suite in it."""
    if ".." in PurePosixPath(directory).parts:
        return
    for name in files.list_names(root / directory):
        if name in OF_STUDY:
            yield f"{directory}/{name}"
        elif not name.startswith(".") and (root / directory / name).is_dir():
            yield from (f"{directory}/{name}/{each}" for each in files.list_names(root / directory / name)
                        if each in OF_TRIAL)  # fmt: skip


def commit_session(
    root: Path, state: Path, message: str, *, sleep: Callable[[float], None] = time.sleep
) -> Committed:  # fmt: skip
    """Commit what changed of a session, and push. Raises GitFailed where nothing could be committed, or DamagedFile."""
    paths, large = paths_of(root, state)
    done = Committed(left_out=large)
    _patiently(lambda: git(root, "add", "--force", "--", *paths), sleep)
    done.paths = git(root, "diff", "--cached", "--name-only", "--relative", "--", *paths).splitlines()
    if done.paths:
        _patiently(lambda: git(root, "commit", "--quiet", "--message", message, "--", *paths), sleep)
        done.commit = git(root, "rev-parse", "HEAD").strip()
    _push(root, session_name(state), done, sleep)
    return done


def _patiently(step: Callable[[], str], sleep: Callable[[float], None]) -> None:
    for tries_left in range(LOCK_TRIES, 0, -1):
        try:
            step()
            return
        except GitFailed as error:
            if tries_left == 1 or not is_index_locked(error):
                raise
            sleep(1.0)


def _push(root: Path, session: str, done: Committed, sleep: Callable[[float], None]) -> None:
    branch = current_branch(root)
    if branch is None:
        done.problem = "HEAD is on no branch, so nothing is pushed"
        return
    remote = remote_of(root, branch)
    if remote is None:
        return
    if branch in MAIN:
        done.advice = f"{branch} is its owner's branch; a session works on a research branch, see docs/session.md"
    error = _push_to(root, remote, branch, sleep)
    if error is not None and is_refused(error):
        # Its new commits are not merged here: the working tree belongs to what runs.
        beside = f"{branch}-{session}-{git(root, 'rev-parse', '--short', 'HEAD').strip()}"
        why = "has moved on" if is_behind(error) else f"does not take it ({error})"
        error = _push_to(root, remote, beside, sleep)
        if error is None:
            done.pushed_to, done.problem = f"{remote}/{beside}", f"{remote}/{branch} {why}; merge {remote}/{beside}"
            return
    if error is None:
        done.pushed_to = f"{remote}/{branch}"
    else:
        done.problem = str(error)


def _push_to(root: Path, remote: str, branch: str, sleep: Callable[[float], None]) -> GitFailed | None:
    """Push HEAD to a branch. Returns why it could not be done; one that has moved on is not waited for."""
    for pause in (*PUSH_PAUSES_S, None):
        try:
            git(root, "push", "--quiet", remote, f"HEAD:refs/heads/{branch}")
        except GitFailed as error:
            if pause is None or is_behind(error):
                return error
            sleep(pause)
        else:
            return None
    return None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `commit`."""
    add_place(parser)
    parser.add_argument("--message", metavar="TEXT", help="of the commit")
    parser.add_argument("--dry-run", action="store_true", help="name the files, and commit nothing")


def commit_command(arguments: argparse.Namespace) -> int:
    """0 if everything is where it belongs, 3 if it is committed and could not be pushed. Raises KevError."""
    root = arguments.root
    state = find_state(root / "runs", arguments.session)
    try:
        git(root, "rev-parse", "--show-toplevel")
    except GitFailed as error:
        raise Refused(f"{root}: {error}; a session is put on record in a git checkout") from None
    if arguments.dry_run:
        paths, large = paths_of(root, state)
        answer(arguments, {"would_commit": paths, "left_out": large},
               [*paths, *(f"!!! too large for git, left out: {path}" for path in large)])  # fmt: skip
        return 0
    with failures_of_files():
        done = commit_session(root, state, arguments.message or f"Record session {session_name(state)}")
    lines = [f"committed {len(done.paths)} files as {done.commit[:12]}" if done.commit else "nothing has changed"]
    lines += [f"!!! too large for git, left out: {path}" for path in done.left_out]
    lines += [f"pushed to {done.pushed_to}"] if done.pushed_to else []
    lines += [f"!!! {text}" for text in (done.problem, done.advice) if text]
    answer(arguments, done.to_json(), lines)
    return NOT_PUSHED if done.problem and not done.pushed_to else 0
