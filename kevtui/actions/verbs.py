"""The verbs: what each acts on, and how much care it asks for. Loaded before anything heavy."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NAME_ABOVE_USD: Final = 20.0
"""From this bound on an action is confirmed by typing the name of its target, unless the settings say otherwise."""


class Weight(StrEnum):
    """How much care an action asks for."""

    SAFE = "safe"
    """Costs nothing and can be repeated or taken back."""
    SPENDS = "spends"
    """May cost money."""
    IRREVERSIBLE = "irreversible"
    """Ends, decides or publishes something for good."""


class TargetKind(StrEnum):
    """What a verb's target names."""

    ROUND = "round"
    STAGE = "round/stage"
    TRIAL = "study/trial"
    UNIT = "study/trial or unit"
    NAME = "study or read"
    STUDY = "study"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    title: str
    """As a heading begins: "Open session"."""
    kind: TargetKind
    weight: Weight
    text: str

    def heading(self, target: str | None) -> str:
        """As a heading: `Launch r41`."""
        return f"{self.title} {target}" if target else self.title


_TABLE = (
    Verb("validate", "Validate", TargetKind.ROUND, Weight.SAFE, "Say everything that is wrong with the round's spec"),
    Verb("deploy", "Deploy", TargetKind.ROUND, Weight.IRREVERSIBLE, "Put these sources where the round runs"),
    Verb("launch", "Launch", TargetKind.ROUND, Weight.SPENDS, "Start the studies of the round that are missing"),
    Verb("watch", "Start the watcher of", TargetKind.ROUND, Weight.SPENDS, "See the round through to its read-out"),
    Verb("reads", "Launch the reads of", TargetKind.STAGE, Weight.SPENDS, "Start the reads that arms still need"),
    Verb("resume", "Resume", TargetKind.TRIAL, Weight.SPENDS, "Continue a trial that a timeout ended"),
    Verb("pull", "Pull", TargetKind.NAME, Weight.SAFE, "Bring home what a study or a read has written"),
    Verb("readout", "Read out", TargetKind.ROUND, Weight.SAFE, "Compare every arm with its parent under the rule"),
    Verb("confirm", "Confirm", TargetKind.STAGE, Weight.IRREVERSIBLE, "Decide a stage for the candidate, once"),
    Verb("cancel", "Cancel", TargetKind.UNIT, Weight.IRREVERSIBLE, "End a trial or a read, on record"),
    Verb("mirror", "Mirror", TargetKind.STUDY, Weight.IRREVERSIBLE, "Upload a study's checkpoints; first a dry run"),
    Verb("open", "Open session", TargetKind.SESSION, Weight.SPENDS, "Say what a new session may spend"),
    Verb("close", "Close session", TargetKind.SESSION, Weight.IRREVERSIBLE, "End a session: nothing more starts"),
    Verb("refresh", "Read the meter of", TargetKind.SESSION, Weight.SAFE, "Take a billing reading"),
    Verb("pause", "Pause", TargetKind.SESSION, Weight.SAFE, "Start nothing new until it is lifted"),
    Verb("unpause", "Unpause", TargetKind.SESSION, Weight.SPENDS, "Let the session start new work again"),
)  # fmt: skip

VERBS: Final = {verb.name: verb for verb in _TABLE}
