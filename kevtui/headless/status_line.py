"""A session in one line: for the status bar of tmux, a prompt, a phone."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from kev.text import shorten, visible
from kevtui import format as figures
from kevtui import glyphs
from kevtui.headless.styled import width_of
from kevtui.observe.snapshot import Severity, Snapshot, TrialState, WatcherState

BETWEEN: Final = " · "
MOST_ALERT: Final = 60
SHORTEST_ALERT: Final = 16
"""An alert that had to be cut below this says nothing; it is left out and only counted."""

TMUX_STYLES: Final = {Severity.CRITICAL: "#[fg=red,bold]", Severity.WARNING: "#[fg=yellow]", Severity.INFO: ""}
TMUX_PLAIN: Final = "#[default]"

_BUSY: Final = (
    TrialState.RUNNING, TrialState.PENDING, TrialState.TIMED_OUT, TrialState.FAILED, TrialState.REFUSED,
    TrialState.UNREACHABLE, TrialState.DONE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that the line says, if there is room."""

    words: str
    rank: int
    """Parts of a high rank go first where the line is short; those of rank 0 stay."""
    severity: Severity = Severity.INFO


def render(snapshot: Snapshot, *, width: int | None = None, tmux: bool = False, ascii_only: bool = False) -> str:
    """The line, without its end, at most `width` columns wide (as long as it is if None).

    `tmux` adds colours in tmux's own notation. File text is made safe for it: tmux reads the output of `#(...)` as a
    format again, in which `#` begins a command of its own and `%` a date.
    """
    return join(_parts(snapshot), width=width, tmux=tmux, ascii_only=ascii_only)


def join(parts: list[Part], *, width: int | None = None, tmux: bool = False, ascii_only: bool = False) -> str:
    """`parts` in one line, as `render` has them."""
    parts = [Part(_words(part.words, ascii_only), part.rank, part.severity) for part in parts]
    between = glyphs.to_ascii(BETWEEN) if ascii_only else BETWEEN
    shown = _fitting(parts, between, width)
    if not tmux:
        return between.join(part.words for part in shown)
    return between.join(_for_tmux(part) for part in shown)


def _parts(snapshot: Snapshot) -> list[Part]:
    """In the order they are read."""
    worst = _worst(snapshot)
    sign = glyphs.SEVERITY[worst] if worst is not Severity.INFO else glyphs.GOOD
    title = f"{sign} {snapshot.session or snapshot.title}"
    parts = [Part(f"{title} SAMPLE" if snapshot.sample else title, 0, worst), *_money(snapshot)]
    counted = Counter(trial.state for trial in snapshot.trials)
    running = [f"{glyphs.TRIAL[state]} {counted[state]} {state}" for state in _BUSY if counted[state]]
    if running:
        parts.append(Part(" ".join(running), 2))
    watcher = snapshot.watcher.state
    if watcher is WatcherState.DOWN:
        parts.append(Part(f"watcher down {figures.age(snapshot.watcher.age_s)}", 1, Severity.CRITICAL))
    elif watcher is not WatcherState.NONE:
        parts.append(Part(f"watcher {watcher}", 6))
    if snapshot.readout is not None:
        chosen = [arm for _, arm in snapshot.readout.candidates if arm]
        if chosen:
            parts.append(Part(f"candidate {', '.join(chosen)}", 2))
    alerts = snapshot.urgent
    if alerts:
        first = min(alerts, key=lambda alert: alert.severity is not Severity.CRITICAL)
        parts.append(Part(f"{len(alerts)} alert{'s' if len(alerts) > 1 else ''}", 3, worst))
        parts.append(Part(shorten(f"{first.subject} {first.text}".strip(), MOST_ALERT), 5, first.severity))
    return parts


def _money(snapshot: Snapshot) -> list[Part]:
    money = snapshot.money
    if money.authorization is None and money.spent is None:
        return []
    simulated = "simulated " if money.simulated else ""
    spent = f"{simulated}{figures.money(money.spent)} of {figures.dollars(money.authorization)}"
    parts = [Part(spent, 1)]
    if money.committed:
        complete = "" if money.committed_complete else " at least"
        parts.append(Part(f"+{figures.money(money.committed)} out{complete}", 4))
    gone = money.headroom is not None and money.headroom <= 0
    parts.append(Part(f"headroom {figures.money(money.headroom)}", 3, Severity.CRITICAL if gone else Severity.INFO))
    if money.reading_stale:
        ahead = money.reading_age_s is None
        age = "ahead of the clock" if ahead else f"{figures.age(money.reading_age_s)} old"
        parts.append(Part(f"reading {age}", 2, Severity.WARNING))
    return parts


def _worst(snapshot: Snapshot) -> Severity:
    found = {alert.severity for alert in snapshot.urgent}
    return next((item for item in (Severity.CRITICAL, Severity.WARNING) if item in found), Severity.INFO)


def _fitting(parts: list[Part], between: str, width: int | None) -> list[Part]:
    if width is None:
        return parts
    kept = sorted(range(len(parts)), key=lambda index: parts[index].rank)
    shown: dict[int, Part] = {}
    left = width
    for index in kept:
        part = parts[index]
        room = left - (width_of(between) if shown else 0)
        if width_of(part.words) > room and (part.rank == 0 or (part.rank == 5 and room >= SHORTEST_ALERT)):
            part = Part(_cut(part.words, room), part.rank, part.severity)
        if width_of(part.words) <= room:
            shown[index] = part
            left = room - width_of(part.words)
    return [shown[index] for index in sorted(shown)]


def _cut(words: str, width: int) -> str:
    """`words` in at most `width` columns; a wide character takes two."""
    length = width
    while length and width_of(short := shorten(words, length)) > width:
        length -= 1
    return short if length else ""


def _words(words: str, ascii_only: bool) -> str:
    words = visible(words)
    return glyphs.to_ascii(words) if ascii_only else words


def _for_tmux(part: Part) -> str:
    # A doubled "%" would be shown as two by those versions of tmux that read no dates here.
    words = part.words.replace("#", "##").replace("%", "pct")
    style = TMUX_STYLES[part.severity]
    return f"{style}{words}{TMUX_PLAIN}" if style else words
