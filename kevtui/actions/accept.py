"""Doing what was agreed to: on record first, then in a process of its own that outlives whoever asked."""

import getpass
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.errors import KevError, LockHeld, Refused
from kev.records.request import ActionRequest
from kev.session import append_event, events_path
from kevtui.actions.home import environment
from kevtui.actions.proposal import ID_DIGITS, Proposal, place_of
from kevtui.actions.requests import (
    ACCEPTING_S,
    Accepted,
    directory_of,
    find_latest,
    lock_of,
    next_number,
    read_accepted,
)
from kevtui.actions.verbs import Weight

WAIT_S = 0.05
RUNNER = (sys.executable, "-m", "kevtui.actions.runner")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of agreeing to an action."""

    accepted: Accepted
    repeated: bool
    """True where it was accepted before: it is shown, and nothing was started."""


def who() -> str:
    """Who acts: user and machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"


def accept(proposal: Proposal, clock: Clock, *, reason: str = "", runner: Sequence[str] = RUNNER) -> Outcome:
    """Put `proposal` on record and start it, unless the same was accepted before.

    The caller has just made the proposal by a fresh read, and has checked that it was agreed to. Raises Refused where
    a precondition is not met, DamagedFile, or KevError if it could not be put on record; nothing was started then.
    """
    if proposal.unmet:
        unmet = "; ".join(f"{check.text}: no{f' ({check.detail})' if check.detail else ''}" for check in proposal.unmet)
        raise Refused(f"{proposal.verb} {proposal.target}: {unmet}")
    runs = Path(proposal.root) / "runs"
    place = place_of(proposal.verb, proposal.target)
    until = time.monotonic() + ACCEPTING_S
    while True:
        try:
            with files.locked(lock_of(runs, place)) as lock:
                return _accept(proposal, clock, reason, runner, runs, place, lock)
        except LockHeld as error:
            latest = find_latest(runs, place)
            if latest is not None and latest.result is None:
                return Outcome(latest, repeated=True)
            # It is just being accepted, or just ending, elsewhere.
            if time.monotonic() > until:
                raise KevError(f"{proposal.verb} {proposal.target}: is held by {error.holder}") from None
            time.sleep(WAIT_S)
        except OSError as error:
            raise KevError(
                f"{directory_of(runs)}: cannot be written ({error.strerror or error}); nothing was started"
            ) from None


def _accept(
    proposal: Proposal, clock: Clock, reason: str, runner: Sequence[str], runs: Path, place: str, lock: int
) -> Outcome:
    before = find_latest(runs, place, proposal.state)
    if before is not None and before.ok and proposal.weight is not Weight.SAFE:
        return Outcome(before, repeated=True)
    name = f"{place}-{proposal.state[:ID_DIGITS]}-{next_number(runs, place)}"
    directory = directory_of(runs)
    request = ActionRequest(
        id=name, verb=proposal.verb, target=proposal.target, state=proposal.state, command=list(proposal.command),
        environment=dict(proposal.environment), root=proposal.root, at=clock.now().timestamp(), who=who(),
        host=os.uname().nodename, process=os.getpid(), reason=reason, before=proposal.before, after=proposal.after,
        bound_usd=proposal.bound, session=proposal.session, state_file=proposal.state_file,
        preview=dict(proposal.facts),
    )  # fmt: skip
    files.create_exclusive(directory / f"{name}.json", files.dump_json(request.to_json()))
    tell(request, clock, "accepted")
    with files.open_log(directory / f"{name}.log") as log:
        process = subprocess.Popen(
            [*runner, str(directory), name, str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(),
            pass_fds=(lock,),
            start_new_session=True,
        )
    # It lives on by itself; without this its handle would complain that it was never waited for.
    process.returncode = 0
    return Outcome(read_accepted(runs, name), repeated=False)


def tell(request: ActionRequest, clock: Clock, how: str, *, failed: bool = False, text: str = "") -> None:
    """Write to the session's journal. A session that does not exist has none, and nothing is made up for it."""
    state = Path(request.state_file) if request.state_file else None
    if state is None or not state.exists():
        return
    why = f"; why: {request.reason}" if request.reason else ""
    change = f"{request.before} -> {request.after}" if request.after else ""
    words = [f"{request.verb} {how}", change, text, f"{request.id}{why}"]
    # What was agreed to is on record in the request itself; a journal that takes no line must not undo it.
    with suppress(OSError):
        append_event(
            events_path(state), clock.now(), "action", "; ".join(word for word in words if word),
            severity="warning" if failed else "info", subject=request.target, who=request.who,
        )  # fmt: skip
