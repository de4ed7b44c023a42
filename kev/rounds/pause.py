"""`python -m kev.rounds pause` and `unpause`: whether new work may be started, for everyone who uses the session."""

import argparse
import json

from kev.clock import SystemClock
from kev.control import set_control
from kev.errors import KevError
from kev.rounds.engine import add_session_arguments
from kev.rounds.specs import load_spec
from kev.session.find import find_state


def add_pause_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pause`."""
    add_session_arguments(parser)
    parser.add_argument("--hard", action="store_true", help="continue and fetch nothing either")
    parser.add_argument("--reason", default="", metavar="TEXT", help="goes on record")


def add_unpause_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `unpause`."""
    add_session_arguments(parser)


def pause_command(arguments: argparse.Namespace) -> int:
    """Pause the session."""
    return _set(arguments, "hard" if arguments.hard else "soft", arguments.reason)


def unpause_command(arguments: argparse.Namespace) -> int:
    """Let the session go on."""
    return _set(arguments, "running", "")


def _set(arguments: argparse.Namespace, mode: str, reason: str) -> int:
    import getpass

    loaded = load_spec(arguments.spec, arguments.root)
    state = find_state(loaded.root / "runs", arguments.session)
    at = SystemClock().now().timestamp()
    try:
        control = set_control(state, mode, who=getpass.getuser(), at=at, reason=reason)
    except OSError as error:
        raise KevError(f"{state.parent}: cannot be written ({error.strerror or error}); nothing is changed") from None
    print(json.dumps(control.to_json()) if arguments.json else f"{state.name}: {mode}")
    return 0
