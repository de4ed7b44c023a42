"""From a wish to a proposal, by one fresh read."""

from collections.abc import Callable
from pathlib import Path

from kev.clock import Clock
from kev.errors import UsageError
from kevtui.actions import reads, rounds, sessions, trials
from kevtui.actions.proposal import Proposal, Wish
from kevtui.actions.truth import Truth
from kevtui.actions.verbs import VERBS, Weight

PROPOSE: dict[str, Callable[[Truth, Wish], Proposal]] = {
    "validate": rounds.propose_validate,
    "deploy": rounds.propose_deploy,
    "launch": rounds.propose_launch,
    "watch": rounds.propose_watch,
    "reads": reads.propose_reads,
    "readout": rounds.propose_readout,
    "resume": trials.propose_resume,
    "pull": trials.propose_pull,
    "cancel": trials.propose_cancel,
    "mirror": trials.propose_mirror,
    "confirm": sessions.propose_confirm,
    "open": sessions.propose_open,
    "close": sessions.propose_close,
    "refresh": sessions.propose_refresh,
    "pause": sessions.propose_pause,
    "unpause": sessions.propose_unpause,
}


def propose(wish: Wish, root: Path, clock: Clock) -> Proposal:
    """What `wish` comes to, as things stand now. Raises KevError where not even the target can be told."""
    if wish.verb not in VERBS:
        raise UsageError(f"no action is called {wish.verb}; there are {', '.join(VERBS)}")
    return PROPOSE[wish.verb](Truth(root, clock, wish.session), wish)


def needs_explicit_target(wish: Wish) -> bool:
    """Whether `wish` leaves out what an action that spends or destroys must be told."""
    verb = VERBS[wish.verb]
    if verb.weight is Weight.SAFE or not wish.target:
        return verb.weight is not Weight.SAFE
    return verb.name == "confirm" and "/" not in wish.target
