"""What the terminal can show, and how tmux is set. Everything is read from the environment or asked of tmux itself."""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping

from kevtui.doctor.check import Check, Outcome

SMALLEST = (80, 24)
SLOW_ESCAPE_MS = 50
OLDEST_TMUX = (3, 3)
"""From here on `allow-passthrough` exists; before it notifications cannot leave tmux."""

TIMEOUT_S = 5.0

Ask = Callable[[list[str]], str | None]
"""The answer of a tmux command, or None where there is none."""


def terminal(
    environment: Mapping[str, str], *, is_terminal: bool, encoding: str, size: tuple[int, int]
) -> Iterator[Check]:
    """Checks of the terminal that this is printed to. `size` is (columns, lines)."""
    area = "terminal"
    if not is_terminal:
        found = "the output is not a terminal, so only --once, --plain and --json work here"
        yield Check(area, "screen", Outcome.INFO, found)
    name = environment.get("TERM", "")
    if name in ("", "dumb", "unknown"):
        yield Check(
            area, "TERM", Outcome.BAD, f'TERM is "{name}"', "export TERM=xterm-256color, or what your terminal is"
        )
    else:
        yield Check(area, "TERM", Outcome.GOOD, name)
    yield _colours(environment, name)
    if encoding.lower().replace("_", "-").startswith("utf"):
        yield Check(area, "characters", Outcome.GOOD, encoding)
    else:
        fix = "export LC_ALL=C.UTF-8 (over SSH: SendEnv LC_*); until then --ascii is used"
        yield Check(area, "characters", Outcome.RISK, f"{encoding or 'no encoding'}: signs are drawn in ASCII", fix)
    columns, lines = size
    small = columns < SMALLEST[0] or lines < SMALLEST[1]
    yield Check(
        area, "size", Outcome.RISK if small and is_terminal else Outcome.GOOD, f"{columns}x{lines}",
        "80x24 shows every panel; below it panels are shown one at a time" if small and is_terminal else "",
    )  # fmt: skip
    if environment.get("SSH_TTY") or environment.get("SSH_CONNECTION"):
        yield Check(area, "SSH", Outcome.INFO, "the mouse is off, since every move of it is bytes; --mouse turns it on")


def _colours(environment: Mapping[str, str], name: str) -> Check:
    if "NO_COLOR" in environment:
        return Check("terminal", "colours", Outcome.INFO, "none, as NO_COLOR asks; states are told by sign and word")
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Check("terminal", "colours", Outcome.GOOD, "16 million (COLORTERM)")
    if "256color" in name or "direct" in name:
        return Check("terminal", "colours", Outcome.GOOD, "256")
    fix = "export TERM=xterm-256color, or screen-256color inside tmux, if the terminal has them"
    return Check("terminal", "colours", Outcome.RISK, "16", fix)


def tmux(environment: Mapping[str, str], ask: Ask) -> Iterator[Check]:
    """Checks of the tmux server that this runs in; nothing where it does not run in one."""
    if not environment.get("TMUX"):
        found = "not in tmux: the dashboard ends with this terminal, the session goes on without it"
        yield Check("tmux", "server", Outcome.INFO, found)
        return
    said = ask(["-V"])
    if said is None:
        yield Check("tmux", "server", Outcome.RISK, "TMUX is set, and tmux does not answer", "unset TMUX")
        return
    version = _version(said)
    old = version is not None and version < OLDEST_TMUX
    fix = "tmux 3.3 or later lets notifications out" if old else ""
    yield Check("tmux", "version", Outcome.RISK if old else Outcome.GOOD, said.strip(), fix)
    options = _options(ask)
    yield _colours_in_tmux(options)
    for option, wanted, why in (
        ("set-clipboard", ("on", "external"), "copying reaches the terminal's clipboard (OSC 52)"),
        ("allow-passthrough", ("on", "all"), "notifications reach the terminal (OSC 9, OSC 777)"),
        ("focus-events", ("on",), "the dashboard slows down while it is out of sight"),
    ):
        yield _option(options, option, wanted, why)
    delay = options.get("escape-time", "")
    if delay.isdecimal() and int(delay) > SLOW_ESCAPE_MS:
        yield Check(
            "tmux", "escape-time", Outcome.RISK, f"{delay} ms: Esc closes a dialog late",
            "tmux set -sg escape-time 10, and the same line without tmux in ~/.tmux.conf",
        )  # fmt: skip


def ask_tmux(arguments: list[str]) -> str | None:
    """What `tmux ARGUMENTS` prints, or None where it fails or does not answer."""
    try:
        done = subprocess.run(
            ["tmux", *arguments], capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _version(said: str) -> tuple[int, int] | None:
    found = re.search(r"(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def _options(ask: Ask) -> dict[str, str]:
    options: dict[str, str] = {}
    # Of the server, of sessions, of windows; "-A" would need one target for all three.
    for scope in ("-s", "-g", "-gw"):
        for line in (ask(["show-options", scope]) or "").splitlines():
            name, _, value = line.partition(" ")
            base = name.partition("[")[0]
            value = value.strip('"')
            options[base] = f"{options[base]},{value}" if base in options else value
    return options


def _colours_in_tmux(options: dict[str, str]) -> Check:
    features = options.get("terminal-features", "") + options.get("terminal-overrides", "")
    if re.search(r"\b(RGB|Tc)\b", features):
        return Check("tmux", "colours", Outcome.GOOD, "16 million are let through")
    fix = "tmux set -as terminal-features ',*:RGB', and the same line without tmux in ~/.tmux.conf"
    return Check("tmux", "colours", Outcome.INFO, "colours are rounded to 256", fix)


def _option(options: dict[str, str], name: str, wanted: tuple[str, ...], why: str) -> Check:
    value = options.get(name)
    if value in wanted:
        return Check("tmux", name, Outcome.GOOD, f"{value}: {why}")
    where = "-sg" if name in ("set-clipboard", "focus-events") else "-g"
    fix = f"tmux set {where} {name} {wanted[0]}, and the same line without tmux in ~/.tmux.conf"
    return Check("tmux", name, Outcome.RISK, f"{value or 'not known'}; with {wanted[0]} {why}", fix)
