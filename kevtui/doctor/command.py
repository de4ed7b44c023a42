"""`kevtui doctor`: every check, as a table or as JSON. Nothing is written, and nothing is asked of a network."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kev.clock import SystemClock
from kev.text import visible
from kevtui import exit_codes
from kevtui.doctor import machine, place, terminal
from kevtui.doctor.check import Check, Outcome
from kevtui.headless.output import Output
from kevtui.headless.paint import Paint, as_text
from kevtui.headless.styled import Text
from kevtui.observe.mounts import read_table
from kevtui.settings import BadSettings, read_settings, settings_path

INOTIFY = Path("/proc/sys/fs/inotify")
TIMEOUT_S = 5.0

SIGNS = {Outcome.GOOD: ("done", "good"), Outcome.INFO: ("planned", "info"), Outcome.RISK: ("warning", "risk"),
         Outcome.BAD: ("failed", "bad")}  # fmt: skip
"""The state whose sign and colour stand for an outcome, and its word."""


def doctor(arguments: argparse.Namespace) -> int:
    """Print the checks; FINDINGS where one is bad. Raises KevError, OutputLost and OutputEnded."""
    output = Output(sys.stdout, os.environ, ascii_only=arguments.ascii)
    checks = list(look(arguments.root or Path.cwd(), is_terminal=output.is_terminal))
    output.write(as_json(checks) if arguments.json else as_table(checks, output))
    bad = any(check.outcome is Outcome.BAD for check in checks)
    return exit_codes.FINDINGS if bad else exit_codes.FINE


def look(root: Path, *, is_terminal: bool) -> Iterator[Check]:
    """Every check of this machine, with `root` as the folder that holds runs/."""
    from kevtui.observe.target import find_root

    environment = os.environ
    size = shutil.get_terminal_size()
    encoding = getattr(sys.stdout, "encoding", None) or ""
    yield from terminal.terminal(
        environment, is_terminal=is_terminal, encoding=encoding, size=(size.columns, size.lines)
    )
    yield from terminal.tmux(environment, terminal.ask_tmux)
    yield from _settings()
    yield from machine.clock(SystemClock().now(), _synchronized())
    yield from place.place(find_root(root), read_table(), time.time())
    yield from machine.events(_limits())
    yield from machine.provider(environment, Path.home())
    yield from machine.installed()


def as_table(checks: Sequence[Check], output: Output) -> str:
    """One line a check, and under it what would put it right."""
    paint = Paint(output.ascii_only, output.width)
    lines: list[Text] = []
    area = ""
    for check in checks:
        if check.area != area:
            lines += paint.section(area := check.area)
        state, word = SIGNS[check.outcome]
        lines.append(
            Text.of("  ", paint.state(state, word.ljust(4)), paint.text(f"  {check.name}: "), paint.text(check.found))
        )
        if check.fix:
            lines.append(Text.of("           ", paint.text(f"-> {check.fix}", "bold")))
    counted = {outcome: sum(check.outcome is outcome for check in checks) for outcome in Outcome}
    total = ", ".join(f"{number} {outcome}" for outcome, number in counted.items())
    lines += [Text(), paint.text(total)]
    return as_text(lines, output)


def as_json(checks: Sequence[Check]) -> str:
    """A list of objects with the fields of Check."""
    listed = [
        {"area": check.area, "name": check.name, "outcome": check.outcome, "found": visible(check.found),
         "fix": check.fix or None}
        for check in checks
    ]  # fmt: skip
    return json.dumps(listed, indent=2) + "\n"


def _settings() -> Iterator[Check]:
    path = settings_path(os.environ)
    try:
        alerts = read_settings().alerts
    except BadSettings as error:
        for line in error.lines:
            yield Check("settings", path.name, Outcome.BAD, line, "docs/settings.md has every setting")
        return
    found = f"{path}" if path.exists() else f"no {path}: everything is as it comes"
    yield Check("settings", path.name, Outcome.GOOD, found)
    if alerts.hook:
        yield machine.hook(alerts.hook, shutil.which(alerts.hook[0]))


def _synchronized() -> str | None:
    try:
        done = subprocess.run(
            ["timedatectl", "show", "--property=NTPSynchronized", "--value"],
            capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout.strip()
    return said if done.returncode == 0 and said in ("yes", "no") else None


def _limits() -> dict[str, int]:
    found = {}
    for name in ("max_user_instances", "max_user_watches"):
        text = _text(INOTIFY / name).strip()
        if text.isdecimal():
            found[name] = int(text)
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
