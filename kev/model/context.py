"""How long a record may be, in tokens, and what is said of one that is longer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kev.errors import Refused

ROW_PASS_TOKENS = 16_384
"""Padded tokens of one pass in inference; a packed record that is longer is read as rows."""


@dataclass(frozen=True, slots=True)
class Context:
    """Limits in tokens. Manifests and files use these names.

    `max_state` counts the state and its delimiter. `max_branch`, against its name, is the limit of the state and one
    question together. `max_packed` is that of the whole packed record.
    """

    max_state: int = 384
    max_branch: int = 1024
    max_packed: int = 2048

    @classmethod
    def for_states(cls, max_state: int) -> Self:
        """The training context with its limit of states raised; the room of the questions stays."""
        default = cls()
        lifted = max_state - default.max_state
        return cls(max_state, default.max_branch + lifted, default.max_packed + lifted)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """The context that a suite's manifest records, or the training default where it is silent."""
        recorded = manifest.get("context")
        recorded = recorded if isinstance(recorded, Mapping) else {}
        default = cls()
        names = ("max_state", "max_branch", "max_packed")
        return cls(*(value if type(value := recorded.get(name)) is int else getattr(default, name) for name in names))


TRAINING = Context()
SERVING = Context(65_536, 73_728, 139_264)


class ContextOverflow(Refused, ValueError):
    """A record is longer than the context admits.

    `state_tokens` counts the whole state, as it was before anything was cut, and `max_state` is its limit.
    """

    def __init__(self, reason: str, *, state_tokens: int, max_state: int) -> None:
        self.state_tokens = state_tokens
        self.max_state = max_state
        super().__init__(reason)
