"""`kevtui act`: the actions of the dashboard without a screen, with the same checks and the same journal.

With `--json` one object is printed, whatever happens. `changed` is true only where this call changed something:
an action that was accepted before is shown, with `changed` false and exit status 0.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev.errors import KevError, NotFound, Refused, UsageError
from kev.text import visible
from kevtui import acknowledge_command, exit_codes
from kevtui.actions.verbs import VERBS, Weight
from kevtui.headless.output import Output

if TYPE_CHECKING:
    from kev.clock import Clock
    from kevtui.actions.accept import Outcome
    from kevtui.actions.proposal import Proposal, Wish

POLL_S = 0.1
"""Between two looks at the result of what was started."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `kevtui act`."""
    verbs = [*VERBS, acknowledge_command.VERB]
    parser.add_argument("verb", choices=verbs, metavar="VERB", help=", ".join(verbs))
    parser.add_argument("target", nargs="?", metavar="TARGET", help="what it acts on: r41, r41/STAGE, STUDY/trial-0, "
                        "a study, a read or a session, as the verb has it")  # fmt: skip
    parser.add_argument("--root", type=Path, metavar="DIR", help="the folder that holds runs/ and experiments/")
    parser.add_argument("--session", metavar="NAME", help="the session that pays, where there are several")
    parser.add_argument("--round", metavar="ROUND", help="the round that the target belongs to, where it is not known")
    parser.add_argument("--arm", metavar="NAME", help="reads, confirm: the arm")
    parser.add_argument("--authorization", metavar="USD", help="open: what the session may spend in all")
    parser.add_argument("--hard", action="store_true", help="pause: continue and fetch nothing either")
    parser.add_argument("--weights", action="store_true", help="pull: weights as well")
    parser.add_argument("--beyond-bound", action="store_true", help="resume: one attempt more than was admitted")
    parser.add_argument("--alert", action="append", metavar="ID", help="acknowledge: an alert by its id, or all")
    parser.add_argument("--withdraw", action="store_true", help="acknowledge: take that back")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what it would do and whether it may; change nothing"
    )
    parser.add_argument("--yes", action="store_true", help="confirm what spends or cannot be undone")
    parser.add_argument("--name", metavar="NAME", help="confirm by name what asks for it; --dry-run says which")
    parser.add_argument("--reason", default="", metavar="TEXT", help="goes on record")
    parser.add_argument("--expect", metavar="ID", help="refuse unless it is still the action with this id")
    parser.add_argument("--beside", action="store_true", help="also while a dashboard has control of the session")
    parser.add_argument("--no-wait", action="store_true", help="return once it is on record and started")
    parser.add_argument("--read-only", action="store_true", help="refuse whatever would change anything")


def act(arguments: argparse.Namespace, *, runner: Sequence[str] | None = None) -> int:
    """Do what `arguments` ask for; the exit status. Raises OutputLost and OutputEnded."""
    output = Output(sys.stdout, os.environ)
    report: dict[str, Any] = {"verb": arguments.verb, "target": arguments.target, "changed": False}
    try:
        if arguments.verb == acknowledge_command.VERB:
            code = acknowledge_command.acknowledge(arguments, report)
        else:
            code = _act(arguments, report, runner)
    except UsageError as error:
        code, report["state"], report["text"] = exit_codes.USAGE, "refused", str(error)
    except NotFound as error:
        code, report["state"], report["text"] = exit_codes.NOTHING, "refused", str(error)
    except KevError as error:
        code, report["state"], report["text"] = exit_codes.REFUSED, "refused", str(error)
    report["exit_status"] = code
    if arguments.json:
        import json

        output.write(json.dumps(report, indent=2) + "\n")
    else:
        output.write("".join(f"{visible(line)}\n" for line in lines(report)))
    return code


def _act(arguments: argparse.Namespace, report: dict[str, Any], runner: Sequence[str] | None) -> int:
    from kev.clock import SystemClock
    from kevtui.actions.propose import needs_explicit_target, propose
    from kevtui.observe.target import find_root

    wish = _wish(arguments)
    root = (arguments.root or find_root(Path.cwd())).absolute()
    if not root.is_dir():
        raise NotFound(f"{root}: no such folder; --root takes the folder that holds runs/ and experiments/")
    clock = SystemClock()
    if not arguments.dry_run and needs_explicit_target(wish):
        kind = VERBS[wish.verb].kind
        raise UsageError(f"{wish.verb} needs its target, a {kind}, also where there is only one")
    proposal = propose(wish, root, clock)
    report |= proposal.to_json()
    if arguments.dry_run:
        report["state"] = "dry run"
        return exit_codes.FINE if not proposal.unmet else exit_codes.REFUSED
    before = _accepted_before(proposal)
    if before is not None:
        return _follow(before, report, arguments.no_wait, clock)
    if proposal.already:
        report["state"], report["text"] = "nothing to do", proposal.already
        return exit_codes.FINE
    _check_allowed(arguments, proposal, root)
    missing = _unconfirmed(arguments, proposal)
    if missing:
        report["state"], report["text"] = "unconfirmed", missing
        return exit_codes.UNCONFIRMED
    from kevtui.actions.accept import RUNNER, accept

    outcome = accept(proposal, clock, reason=arguments.reason, runner=runner or RUNNER)
    return _follow(outcome, report, arguments.no_wait, clock)


def _wish(arguments: argparse.Namespace) -> "Wish":
    from kevtui.actions.proposal import Wish
    from kevtui.settings import read_settings

    return Wish(
        verb=arguments.verb, target=arguments.target, round=arguments.round, session=arguments.session,
        arm=arguments.arm, reason=arguments.reason, authorization=arguments.authorization, hard=arguments.hard,
        beyond_bound=arguments.beyond_bound, weights=arguments.weights,
        name_above_usd=read_settings().name_above_usd,
    )  # fmt: skip


def _accepted_before(proposal: "Proposal") -> "Outcome | None":
    """The same action, or another one of that verb on that target that is still under way."""
    from kevtui.actions.accept import Outcome
    from kevtui.actions.proposal import place_of
    from kevtui.actions.requests import find_latest

    runs, place = Path(proposal.root) / "runs", place_of(proposal.verb, proposal.target)
    latest = find_latest(runs, place)
    if latest is not None and latest.alive(time.time()):
        return Outcome(latest, repeated=True)
    same = find_latest(runs, place, proposal.state)
    if same is not None and same.ok and proposal.weight is not Weight.SAFE:
        return Outcome(same, repeated=True)
    return None


def _check_allowed(arguments: argparse.Namespace, proposal: "Proposal", root: Path) -> None:
    from kevtui.actions.holder import holder_in_control
    from kevtui.permission import why_read_only
    from kevtui.settings import read_settings

    why = why_read_only(root, asked=arguments.read_only, setting=read_settings().read_only)
    if why:
        raise Refused(f"nothing may be changed from here: {why}")
    if arguments.expect is not None and proposal.id != arguments.expect:
        raise Refused(f"{proposal.verb} {proposal.target}: is not what it was when it was shown; look again")
    if proposal.weight is Weight.SAFE or arguments.beside:
        return
    holder = holder_in_control(root / "runs", proposal.session or "")
    if holder is not None and holder.process != os.getpid():
        raise Refused(f"{holder.describe()} has control of the session; --beside acts all the same")


def _unconfirmed(arguments: argparse.Namespace, proposal: "Proposal") -> str:
    """What is missing to confirm it, or ""."""
    if proposal.unmet or proposal.weight is Weight.SAFE:
        return ""
    if not arguments.yes:
        return f"it {'spends' if proposal.weight is Weight.SPENDS else 'cannot be undone'}: add --yes" + (
            f" --name {proposal.typed}" if proposal.typed else ""
        )
    if proposal.typed and arguments.name != proposal.typed:
        return f"confirm it by name: --name {proposal.typed}"
    return ""


def _follow(outcome: "Outcome", report: dict[str, Any], no_wait: bool, clock: "Clock") -> int:
    """Wait for the end of an accepted action, and report it."""
    from kevtui.actions.requests import last_words, read_accepted

    accepted = outcome.accepted
    request = accepted.request
    runs = Path(request.root) / "runs"
    while not no_wait and accepted.alive(clock.now().timestamp()):
        time.sleep(POLL_S)
        accepted = read_accepted(runs, request.id)
    state = accepted.state(clock.now().timestamp())
    changed = not outcome.repeated and state in ("done", "pending") and request.verb != "validate"
    report |= {
        "id": request.id, "state": state, "changed": changed,
        "repeated": outcome.repeated, "who": request.who, "reason": request.reason or None,
        "before": request.before or None, "after": request.after or None,
        "text": (accepted.result.text if accepted.result else last_words(runs, request.id)) or None,
    }  # fmt: skip
    return exit_codes.FINE if state in ("done", "pending") else exit_codes.FAILED


def lines(report: dict[str, Any]) -> Iterator[str]:
    """The report for a person."""
    target = f" {report['target']}" if report.get("target") else ""
    yield f"{report['verb']}{target}: {report.get('state', 'refused')}" + (
        ", as before" if report.get("repeated") else ""
    )
    for check in report.get("checks", ()):
        mark = {True: "yes", False: "NO ", None: "later"}[check["met"]]
        yield f"  {mark:<5} {check['text']}" + (f": {check['detail']}" if check["detail"] else "")
    for name, value in report.get("preview", {}).items():
        yield f"  {name:<14} {value}"
    for name, key in (("for good", "cannot_be_undone"), ("command", "command"), ("id", "id"), ("", "text")):
        if report.get(key):
            yield f"  {name:<14} {report[key]}" if name else f"  {report[key]}"
