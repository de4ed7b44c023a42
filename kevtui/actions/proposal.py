"""What an action would do, before anybody agrees to it: plain values that a dialog, a table and JSON show alike."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kevtui.actions.verbs import NAME_ABOVE_USD, Weight

ID_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Check:
    """One precondition. `met` is None where only the engine can tell, which asks at the moment of doing."""

    text: str
    met: bool | None
    detail: str = ""
    """What was found; where it is not met, what to do."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One action on one target, as of one reading of the truth. Texts from files are raw."""

    verb: str
    target: str
    """Explicit: what `kevtui act` would have to be given."""
    root: str
    command: tuple[str, ...]
    """What the Python interpreter is given."""
    state: str
    """Digest of everything that the action rests on: with another one it is another action."""
    weight: Weight
    checks: tuple[Check, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """(name, value) of the preview: cards, bound, spent, committed, headroom."""
    lasting: str = ""
    """What cannot be undone."""
    typed: str = ""
    """What must be typed to confirm, or ""."""
    already: str = ""
    """Why there is nothing to do."""
    session: str | None = None
    state_file: str | None = None
    bound: str | None = None
    """The most it can cost, US dollars as a decimal string."""
    before: str = ""
    after: str = ""
    """What it changes, in words, for the journal."""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """Derives from verb, target and state, so that wanting the same twice is one action."""
        return f"{place_of(self.verb, self.target)}-{self.state[:ID_DIGITS]}"

    @property
    def unmet(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.met is False)

    @property
    def ready(self) -> bool:
        return not self.unmet and not self.already

    @property
    def shown_command(self) -> str:
        """The command as one would type it."""
        import shlex

        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in self.environment)
        return f"{variables}python {shlex.join(self.command)}"

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "id": self.id,
            "verb": self.verb,
            "target": self.target,
            "weight": str(self.weight),
            "ready": self.ready,
            "already": self.already or None,
            "checks": [{"text": check.text, "met": check.met, "detail": check.detail} for check in self.checks],
            "preview": dict(self.facts),
            "bound_usd": self.bound,
            "cannot_be_undone": self.lasting or None,
            "type_to_confirm": self.typed or None,
            "command": self.shown_command,
            "session": self.session,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for, before anything was read."""

    verb: str
    target: str | None = None
    round: str | None = None
    session: str | None = None
    arm: str | None = None
    reason: str = ""
    authorization: str | None = None
    hard: bool = False
    beyond_bound: bool = False
    weights: bool = False
    name_above_usd: float = NAME_ABOVE_USD
    """From this bound on the target's name must be typed."""


def place_of(verb: str, target: str) -> str:
    """The part of an id that two states of one action share, safe as a file name and never the same for two."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", target).strip("-")[:60] or "all"
    if slug == target:
        return f"{verb}-{slug}"
    return f"{verb}-{slug}-{hashlib.sha256(target.encode(errors='surrogatepass')).hexdigest()[:6]}"


def digest_of(parts: Iterable[object]) -> str:
    """A digest of JSON-like values, for `Proposal.state`."""
    text = json.dumps([str(part) for part in parts])
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
