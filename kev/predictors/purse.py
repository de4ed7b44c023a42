"""What the calls of a read cost, and the cap that no call may pass.

Every call is reserved on disk before it is made and settled after it, so that a read that was killed with calls under
way finds them again, and counts them at the most they can have cost.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from kev.clock import Clock
from kev.errors import NotFound, Refused
from kev.records.base import read_record, write_record
from kev.records.usage import Usage

RESERVED_TOKENS = 65_536
"""What a call is reserved at: the longest state that is served. A longer request is reserved at its own length."""

MILLION = Decimal(1_000_000)


class CapReached(Refused):
    """The next call could pass the cap on money or on calls."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a read may cost. Without a price nothing is known of its cost, and there can be no budget."""

    usd_per_million: Decimal | None = None
    budget: Decimal | None = None
    max_calls: int | None = None

    def cost(self, tokens: int) -> Decimal:
        return (self.usd_per_million or Decimal(0)) * tokens / MILLION


class Purse:
    """Counts calls and tokens of one read, in `usage.json`. Threads may share it."""

    def __init__(self, path: Path, model: str, tariff: Tariff, clock: Clock) -> None:
        self._path = path
        self._model = model
        self._tariff = tariff
        self._lock = threading.Lock()
        self._under_way = 0
        self._reserved = 0
        self._retries = 0
        self._refusals: Counter[str] = Counter()
        self._load(clock)

    def reserve(self, body_bytes: int) -> int:
        """Set aside what one call can cost at most, and return its tokens. Raises CapReached, with nothing set aside.

        No byte-level tokenizer makes more tokens than bytes, so the body's length bounds the request.
        """
        tokens = max(RESERVED_TOKENS, body_bytes)
        with self._lock:
            tariff = self._tariff
            if tariff.max_calls is not None and self._calls + self._under_way >= tariff.max_calls:
                raise CapReached(f"the cap of {tariff.max_calls:,} calls is reached; raise --max-calls to go on")
            committed = tariff.cost(self._tokens + self._lost + self._reserved + tokens)
            if tariff.budget is not None and committed > tariff.budget:
                raise CapReached(
                    f"the next call could bring this read to ${committed:.6f}, over its budget of ${tariff.budget}; "
                    "raise --budget to go on from here"
                )
            self._under_way += 1
            self._reserved += tokens
            if tariff.budget is not None or tariff.max_calls is not None:
                self._write()
        return tokens

    def settle(self, reserved: int, input_tokens: int, output_tokens: int) -> None:
        """A reserved call was answered."""
        with self._lock:
            self._release(reserved)
            self._calls += 1
            self._tokens += input_tokens
            self._output += output_tokens

    def release(self, reserved: int, *, refused: int | None = None, retried: bool = False) -> None:
        """A reserved call was not served; `refused` is the status of one that never will be."""
        with self._lock:
            self._release(reserved)
            self._retries += retried
            if refused is not None:
                self._calls += 1
                self._refusals[str(refused)] += 1

    def lose(self, reserved: int, body_bytes: int) -> None:
        """A reserved call may have been served and paid for, but its answer is lost: it counts at a token a byte."""
        with self._lock:
            self._release(reserved)
            self._calls += 1
            self._retries += 1
            self._lost += body_bytes

    def save(self) -> None:
        """Write what is known now."""
        with self._lock:
            self._write()

    def _release(self, reserved: int) -> None:
        self._under_way -= 1
        self._reserved -= reserved

    def _load(self, clock: Clock) -> None:
        try:
            before = read_record(self._path, Usage)
        except NotFound:
            before = Usage(model=self._model, started_at=clock.now().isoformat(), calls=0, input_tokens=0,
                           output_tokens=0, estimated_usd=Decimal(0))  # fmt: skip
        extra = before.model_extra or {}
        self._started = before.started_at
        self._tokens = before.input_tokens
        self._output = before.output_tokens
        self._retries = before.retries_after_5xx or 0
        self._refusals.update(before.refusals or {})
        # Calls that were under way when the read died may have been served; nobody knows, so they count in full.
        self._calls = before.calls + _count(extra, "calls_under_way")
        self._lost = _count(extra, "lost_input_tokens") + _count(extra, "reserved_input_tokens")

    def _write(self) -> None:
        tariff = self._tariff
        usage = Usage.model_validate(
            {
                "model": self._model,
                "started_at": self._started,
                "calls": self._calls,
                "input_tokens": self._tokens,
                "output_tokens": self._output,
                "retries_after_5xx": self._retries,
                "listed_input_usd_per_million": tariff.usd_per_million,
                "refusals": dict(self._refusals),
                "estimated_usd": tariff.cost(self._tokens + self._lost),
                "budget_usd": tariff.budget,
                "lost_input_tokens": self._lost,
                "calls_under_way": self._under_way,
                "reserved_input_tokens": self._reserved,
            }
        )
        write_record(self._path, usage)


def _count(extra: Mapping[str, object], key: str) -> int:
    value = extra.get(key)
    return value if type(value) is int and value > 0 else 0
