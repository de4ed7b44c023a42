"""`kevtui replay`: a night on the dashboard again, or one moment of it as tables or JSON."""

import argparse
import os
import re
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kev.errors import NotFound, UsageError
from kevtui.headless.output import Output, complain

if TYPE_CHECKING:
    from collections.abc import Callable

    from kevtui.observe.snapshot import Snapshot
    from kevtui.observe.target import Target
    from kevtui.replay.history import History

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?Z?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that are replay's own."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--once", action="store_true", help="print one moment as tables: --at, or the last")
    ways.add_argument("--json", action="store_true", help="print one moment as JSON (docs/snapshot.schema.json)")
    parser.add_argument("--at", metavar="TIME", help="start there: 03:12 (UTC) or 2026-09-24T03:12Z")
    parser.add_argument("--speed", type=_speed, default=60.0, metavar="N", help="1 to 1000 times as fast (default: 60)")


def replay(arguments: argparse.Namespace) -> int:
    """Replay what `arguments` name; the exit status. Raises KevError, OutputLost and OutputEnded."""
    from kevtui.record.target import bundle_at

    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    bundle = bundle_at(arguments.session, root=arguments.root, cwd=Path.cwd())
    if bundle is not None:
        return _play(lambda: _open_recorded(bundle), bundle.name, arguments, output)
    from kevtui.observe.target import resolve

    target = resolve(arguments.session, root=arguments.root, cwd=Path.cwd())

    def opened() -> "History":
        from kevtui.observe.observer import leases_of

        return open_history(target, arguments.leases or leases_of(target.root))

    return _play(opened, target.title, arguments, output)


def recorded(bundle: Path, arguments: argparse.Namespace, output: Output) -> int:
    """A recorded night as a session that is over: at its last moment, and any other one key away; the exit status."""
    if arguments.plain:
        raise UsageError(f"{bundle.name} is a recorded night, in which nothing changes; --once or --json prints it")
    arguments.at, arguments.speed = None, 60.0
    return _play(lambda: _open_recorded(bundle), bundle.name, arguments, output, at_end=True)


def _play(
    opened: "Callable[[], History]", title: str, arguments: argparse.Namespace, output: Output, *, at_end: bool = False
) -> int:
    if arguments.once or arguments.json:
        return _print(opened(), arguments, output)
    from kevtui.session_command import no_screen

    if why := no_screen(output):
        complain(f"{why}: printing one moment as with --once")
        return _print(opened(), arguments, output)
    return _show(opened, title, arguments, at_end=at_end)


def open_history(target: "Target", leases: Path, *, only_inside: bool = False) -> "History":
    """What is on the disk of `target` and of no other session; `only_inside` as in `load_night`.

    Raises NotFound where that is nothing.
    """
    from kevtui.replay.choice import own
    from kevtui.replay.history import History
    from kevtui.replay.night import load_night

    return _not_empty(own(History(load_night(target, leases, only_inside=only_inside))))


def _open_recorded(bundle: Path) -> "History":
    from kevtui.record.opening import open_bundle
    from kevtui.replay.history import History

    return _not_empty(History(open_bundle(bundle)))


def _not_empty(history: "History") -> "History":
    if history.is_empty:
        raise NotFound(f"{history.night.target.title}: nothing there to replay; no file of it has a time")
    return history


def _print(history: "History", arguments: argparse.Namespace, output: Output) -> int:
    from kevtui.replay.past import moment
    from kevtui.session_command import exit_status

    snapshot = moment(history, parse_moment(arguments.at, history) if arguments.at else history.ends_at)
    output.write(_rendered(snapshot, arguments, output))
    return exit_status(snapshot, strict=getattr(arguments, "strict", False))


def _rendered(snapshot: "Snapshot", arguments: argparse.Namespace, output: Output) -> str:
    if arguments.json:
        from kevtui.headless import as_json

        return as_json.render(snapshot)
    from kevtui.headless import once

    return once.render(snapshot, output)


def _show(opened: "Callable[[], History]", title: str, arguments: argparse.Namespace, *, at_end: bool) -> int:
    from kevtui.app import run
    from kevtui.dashboard import options_of
    from kevtui.replay.player import Player
    from kevtui.settings import read_settings

    options = options_of(arguments, read_settings())

    def start(history: "History") -> datetime:
        if arguments.at:
            return parse_moment(arguments.at, history)
        return history.ends_at if at_end else history.begins_at

    player = Player(opened, start=start, speed=arguments.speed, playing=not at_end)
    return run(lambda: player, title=title, options=replace(options, command_player=player.command))


def parse_moment(text: str, history: "History") -> datetime:
    """`text` as a moment; a time of day is the first such after the beginning. Raises UsageError."""
    if clock := _CLOCK.fullmatch(text.strip()):
        hour, minute, second = (int(part or 0) for part in clock.groups())
        begins = history.begins_at
        at = begins.replace(hour=hour, minute=minute, second=second, microsecond=0)
        return at if at >= begins else at + timedelta(days=1)
    from kev.records.instant import read_instant

    instant = read_instant(text)
    if instant.at is None:
        raise UsageError(f"--at {text}: {instant.problem}; give 03:12 (UTC) or 2026-09-24T03:12Z")
    return instant.at


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 1 <= speed <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no speed from 1 to 1000")
    return speed
