"""What the screen is told of actions and of control: plain values, without the records behind them."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kev.clock import Clock
from kevtui.actions.alive import is_process
from kevtui.actions.holder import Holder, read_holder
from kevtui.actions.requests import last_words, read_recent

RECENT_S = 120.0
"""A result stays in sight for this long."""


@dataclass(frozen=True, slots=True)
class SeenAction:
    """One accepted action, whoever asked for it."""

    id: str
    verb: str
    target: str
    state: str
    """`pending`, `done`, `failed` or `interrupted`."""
    text: str
    age_s: float
    who: str


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything at one moment."""

    actions: tuple[SeenAction, ...] = ()
    mine: bool = False
    """Whether this dashboard has control."""
    holder: Holder | None = None
    """Who else has it."""
    asked: Holder | None = None
    """Who would like to have it."""
    trouble: str = ""
    """Why control cannot be had."""


def seen_actions(runs: Path, now: float) -> tuple[SeenAction, ...]:
    """The actions that are under way or ended a moment ago, oldest first."""
    found = []
    for accepted in read_recent(runs, now - RECENT_S):
        request, state = accepted.request, accepted.state(now)
        text = accepted.result.text if accepted.result else last_words(runs, request.id)
        if state == "interrupted" and now - request.at > RECENT_S:
            continue
        found.append(
            SeenAction(request.id, request.verb, request.target, state, text, max(0.0, now - request.at), request.who)
        )
    return tuple(found)


class Eyes:
    """Looks at a session's actions, and changes nothing: all that a read-only dashboard has."""

    may_act: ClassVar[bool] = False

    def __init__(self, root: Path, clock: Clock) -> None:
        self._runs = root / "runs"
        self._clock = clock

    def look(self, session: str | None) -> Sight:
        """What there is now. May wait for a disk: call it from a thread."""
        holder = read_holder(self._runs, session or "")
        if holder is not None and not is_process(holder.process):
            holder = None
        return Sight(seen_actions(self._runs, self._clock.now().timestamp()), holder=holder)
