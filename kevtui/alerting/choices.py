"""What the user wants to be told, and how: the table `[alerts]` of the settings. Loaded before the first frame."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kevtui.observe.snapshot import Severity

OFF: Final = "off"
LEVELS: Final = (OFF, *(str(severity) for severity in Severity))
SEQUENCES: Final = ("osc9", "osc777", "both")
LONGEST_S: Final = 86_400 * 7

KINDS: Final = (
    "candidate", "clock-ahead", "committed-incomplete", "damaged", "exhaustion", "five-minute-check", "gateway-100",
    "gateway-75", "gateway-90", "gradient-norm", "lease-nonce", "lease-stale", "loss-not-finite", "overcommitted",
    "past-timeout", "provider-silent", "read-failed", "read-overdue", "silent", "slowed", "spent-100", "spent-75",
    "spent-90", "stale-reading", "timed-out", "trial-failed", "unreachable", "watcher-down",
)  # fmt: skip
"""Every kind of alert there is; docs/alerts.md says when each is raised."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Quiet but for the bell, and that for what is critical: the screen shows the rest."""

    bell: Severity | None = Severity.CRITICAL
    """The terminal's bell rings from this severity on; None for never."""
    notify: Severity | None = None
    """The terminal is asked to notify its user from this severity on."""
    notify_by: str = "osc9"
    """The sequence that asks: one of SEQUENCES. No terminal says which it knows."""
    hook: tuple[str, ...] = ()
    """A program and its arguments, run with what is told on its input; () for none."""
    hook_from: Severity = Severity.INFO
    hook_timeout_s: float = 10.0
    again_s: float = 900.0
    """The same alert, come back, is told again after so many seconds; until then it is counted."""
    again_of: Mapping[str, float] = field(default_factory=dict)
    """The same for single kinds."""
    mute: frozenset[str] = frozenset()
    """Kinds that are shown and never told."""

    def again(self, kind: str) -> float:
        return self.again_of.get(kind, self.again_s)


AS_IT_COMES: Final = Choices()

FIELDS: Final = (
    ("bell", "severity or `off`", "critical", "the terminal's bell rings from this severity on"),
    ("notify", "severity or `off`", OFF, "the terminal is asked to notify its user from this severity on"),
    ("notify_by", "`osc9`, `osc777` or `both`", "osc9", "the sequence that asks; which one a terminal knows, it does "
     "not say"),
    ("hook", "list of texts", "none of it", "a program and its arguments, run with what is told; no shell reads it"),
    ("hook_from", "severity", "info", "the hook runs from this severity on"),
    ("hook_timeout_s", "seconds", "10", "it is then ended, with all that it started"),
    ("again_s", "seconds", "900", "an alert that comes back is counted, and told again no sooner"),
    ("again", "table", "none of it", "the same for single kinds: `slowed = 3600`"),
    ("mute", "list of kinds", "none of it", "kinds that are shown and never told"),
)  # fmt: skip
"""(name, what it holds, what comes without it, what it does), for the page of settings."""


def read_choices(values: Mapping[str, Any]) -> Choices:
    """The choices of a table in which `problems` found none."""
    least = AS_IT_COMES
    return Choices(
        bell=_level(values.get("bell", str(least.bell))),
        notify=_level(values.get("notify", OFF)),
        notify_by=values.get("notify_by", least.notify_by),
        hook=tuple(values.get("hook", ())),
        hook_from=Severity(values.get("hook_from", least.hook_from)),
        hook_timeout_s=float(values.get("hook_timeout_s", least.hook_timeout_s)),
        again_s=float(values.get("again_s", least.again_s)),
        again_of={kind: float(seconds) for kind, seconds in values.get("again", {}).items()},
        mute=frozenset(values.get("mute", ())),
    )


def problems(values: Any) -> Iterator[str]:
    """A line for each mistake in the table, naming the key."""
    if not isinstance(values, dict):
        yield 'alerts: should be a table, such as [alerts] with bell = "critical"'
        return
    known = {name for name, *_ in FIELDS}
    yield from (f"alerts.{key}: no such setting; there are {', '.join(sorted(known))}" for key in values.keys() - known)
    yield from _one_of(values, "bell", LEVELS)
    yield from _one_of(values, "notify", LEVELS)
    yield from _one_of(values, "notify_by", SEQUENCES)
    yield from _one_of(values, "hook_from", LEVELS[1:])
    hook = values.get("hook", [])
    if not isinstance(hook, list) or not all(isinstance(word, str) and "\0" not in word for word in hook):
        yield 'alerts.hook: should be a list of a program and its arguments, such as ["notify-phone", "--quick"]'
    elif hook and not hook[0].strip():
        yield "alerts.hook: names no program"
    yield from _seconds("alerts.hook_timeout_s", values.get("hook_timeout_s", 1), least=0.1)
    yield from _seconds("alerts.again_s", values.get("again_s", 0))
    again = values.get("again", {})
    if not isinstance(again, dict):
        yield "alerts.again: should be a table of kind = seconds"
    else:
        for kind, seconds in again.items():
            yield from _kind("alerts.again", kind)
            yield from _seconds(f"alerts.again.{kind}", seconds)
    mute = values.get("mute", [])
    if not isinstance(mute, list):
        yield 'alerts.mute: should be a list of kinds, such as ["silent"]'
    else:
        for kind in mute:
            yield from _kind("alerts.mute", kind)


def _level(word: str) -> Severity | None:
    return None if word == OFF else Severity(word)


def _one_of(values: dict[str, Any], name: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if values.get(name, allowed[0]) not in allowed:
        yield f"alerts.{name}: should be one of {', '.join(allowed)}"


def _seconds(name: str, value: Any, *, least: float = 0.0) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= LONGEST_S:
        yield f"{name}: should be a number of seconds from {least:g} to {LONGEST_S:,}"


def _kind(name: str, kind: Any) -> Iterator[str]:
    if kind not in KINDS:
        yield f"{name}: no alert is of the kind {kind!r}; there are {', '.join(KINDS)}"
