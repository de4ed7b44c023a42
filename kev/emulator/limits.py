"""What the provider would not let anyone do at any speed: rates of requests, cards in use, and money."""

from collections import deque
from dataclasses import dataclass, field

from kev.clock import Clock
from kev.emulator.plan import LimitPlan
from kev.emulator.wire import throttled

WINDOW_S = 60.0


@dataclass
class Limits:
    """Counts requests in a sliding minute, and cards held by running containers."""

    settings: LimitPlan
    clock: Clock
    gpus_in_use: int = 0
    _seen: dict[str, deque[float]] = field(default_factory=dict)

    def admit(self, what: str) -> None:
        """Count one request of kind `app_creation` or `listing`. Raises RESOURCE_EXHAUSTED with the time to wait."""
        allowed = {
            "app_creation": self.settings.app_creations_per_minute,
            "listing": self.settings.listings_per_minute,
        }[what]
        if allowed is None:
            return
        now = self.clock.monotonic()
        seen = self._seen.setdefault(what, deque())
        while seen and now - seen[0] >= WINDOW_S:
            seen.popleft()
        if len(seen) >= allowed:
            wait = WINDOW_S - (now - seen[0]) if seen else WINDOW_S
            raise throttled(f"Rate limit of {allowed} {what.replace('_', ' ')}s per minute exceeded.", wait)
        seen.append(now)

    def take_gpus(self, count: int) -> bool:
        """Hold `count` cards if the quota allows it; a request for none is always granted."""
        quota = self.settings.gpus
        if count and quota is not None and self.gpus_in_use + count > quota:
            return False
        self.gpus_in_use += count
        return True

    def give_gpus(self, count: int) -> None:
        self.gpus_in_use -= count
