"""Every sign the screen draws with, and what stands for it where only ASCII may be printed.

A state is never told by its sign or its colour alone: a word stands beside it, or in the legend under it. All signs
are one cell wide, so that a column stays a column.
"""

from kevtui.observe.snapshot import LeaseState, ReadState, Severity, TrialState, Verdict, WatcherState

GOOD, BAD, RISK, LIVE, IDLE, HALF, NOTHING = "✓", "✗", "▲", "●", "○", "◐", "·"

TRIAL = {
    TrialState.PLANNED: NOTHING,
    TrialState.PENDING: IDLE,
    TrialState.RUNNING: LIVE,
    TrialState.DONE: GOOD,
    TrialState.TIMED_OUT: BAD,
    TrialState.REFUSED: BAD,
    TrialState.FAILED: BAD,
    TrialState.CANCELLED: "⊘",
    TrialState.UNREACHABLE: "?",
    TrialState.UNKNOWN: "?",
}
LEASE = {
    LeaseState.FRESH: LIVE,
    LeaseState.LATE: HALF,
    LeaseState.STALE: IDLE,
    LeaseState.RELEASED: NOTHING,
    LeaseState.CLOCK_AHEAD: RISK,
    LeaseState.UNKNOWN: "?",
}
READ = {
    ReadState.ABSENT: NOTHING,
    ReadState.IN_FLIGHT: HALF,
    ReadState.OVERDUE: RISK,
    ReadState.LANDED: GOOD,
    ReadState.FAILED: BAD,
}
WATCHER = {
    WatcherState.ALIVE: LIVE,
    WatcherState.LATE: HALF,
    WatcherState.DOWN: BAD,
    WatcherState.FINISHED: GOOD,
    WatcherState.NONE: NOTHING,
}
VERDICT = {Verdict.PASS: GOOD, Verdict.FAIL: BAD, Verdict.MISSING: NOTHING}
SEVERITY = {Severity.CRITICAL: BAD, Severity.WARNING: RISK, Severity.INFO: NOTHING}

SPARK = "▁▂▃▄▅▆▇█"
SPENT, COMMITTED, FREE, RESERVE = "█", "▓", "░", "╱"
TRACK_DONE, TRACK_LEFT = "━", "─"

ASCII = {
    "✓": "+",
    "✗": "x",
    "▲": "!",
    "●": "*",
    "○": "o",
    "◐": "~",
    "·": ".",
    "⊘": "-",
    "▁": "_",
    "▂": ".",
    "▃": ":",
    "▄": "-",
    "▅": "=",
    "▆": "+",
    "▇": "*",
    "█": "#",
    "▓": "=",
    "░": ".",
    "╱": "/",
    "━": "=",
    "─": "-",
    "–": "-",
    "−": "-",
    "…": "~",
    "≤": "<=",
    "≥": ">=",
    "Δ": "diff",
    "×": "x",
    "±": "+-",
    "→": "->",
    "↑": "up",
    "↓": "down",
}
_STAND_INS = str.maketrans(ASCII)


def to_ascii(text: str) -> str:
    """`text` with every sign replaced by its stand-in, and any other character outside ASCII written as an escape."""
    if text.isascii():
        return text
    return text.translate(_STAND_INS).encode("ascii", "backslashreplace").decode()


def sparkline(values: list[float], width: int) -> str:
    """The last `width` values as bars from 0 to their maximum, so that a slowing down is seen at its true size."""
    tail = values[-width:]
    top = max(tail, default=0.0)
    if top <= 0:
        return ""
    return "".join(SPARK[min(len(SPARK) - 1, int(max(0.0, value) / top * len(SPARK)))] for value in tail)
