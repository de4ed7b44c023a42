"""A session on a real disk with a provider that lives in the test."""

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from fake_compute import FakeClock, FakeCompute

from kev.gate import Gate
from kev.ledger.book import Ledger
from kev.records.ledger import Order
from kev.records.session import SessionState
from kev.session import create_state


def order(name: str = "r41-4b", label: str = "trial-0", *, usd: str = "10", attempts: int = 1, **more: Any) -> Order:
    """A trial of a study, or with kind="read" a read."""
    index = int(label.rpartition("-")[2])
    values: dict[str, Any] = {
        "kind": "trial", "name": name, "label": label, "function": "run_trial",
        "payload": {"study": name, "index": index}, "gpu": "H200", "timeout": 3600, "attempts": attempts,
        "attempt_usd": Decimal(usd), "remote": f"{name}/{index:02d}-{label}",
        "local": f"runs/{name}/{index:02d}-{label}",
        "session": "night",
    }  # fmt: skip
    return Order.model_validate(values | more)


@dataclass
class Lab:
    """A gate, and everything around it."""

    root: Path
    authorization: str = "100"
    clock: FakeClock = field(default_factory=FakeClock)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs = self.root / "runs"
        self.state = self.runs / "night-state.json"
        values = {"session": "night", "simulated": True, "authorization_usd": Decimal(self.authorization),
                  "baseline_usd": Decimal(500), "cycle": "2026-11"}  # fmt: skip
        create_state(self.state, SessionState.model_validate(values))
        self.compute = FakeCompute(self.clock, deliver=self.deliver)
        self.gate = self.new_gate()

    def new_gate(self) -> Gate:
        """A gate as a restarted process has it."""
        return Gate(self.state, Ledger(self.runs), self.compute, self.clock, self.clock.sleep, self.said.append, "Ada")

    def deliver(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def read_events(self) -> list[str]:
        return [line.split('"kind": "')[1].split('"')[0] for line in
                (self.runs / "night-events.jsonl").read_text().splitlines()]  # fmt: skip
