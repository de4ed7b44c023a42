"""A small checkout that tests grow, and clocks that stand still until they are moved."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kevtui.observe.observer import Observer
from kevtui.observe.target import resolve

START = datetime(2027, 3, 28, 0, 30, tzinfo=UTC)


class HeldClock:
    """Both clocks, moved by hand; `skip` moves the wall clock alone, as a sleeping machine does."""

    def __init__(self) -> None:
        self.wall = START
        self.seconds = 5000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds

    def skip(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)


class Checkout:
    """Files as the engine and its trainer write them."""

    def __init__(self, root: Path, clock: HeldClock) -> None:
        self.root, self.clock = root, clock
        self.runs = root / "runs"
        self.runs.mkdir()

    def write(self, path: str, value: Any) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        self._stamp(target)
        return target

    def spawn(self, study: str, labels: int = 1, **more: Any) -> None:
        at = self.clock.now().timestamp()
        calls = {f"trial-{i}": f"fc-{study}-{i}" for i in range(labels)}
        attempts = {label: [{"nonce": f"{i:032x}", "call": call, "at": at}] for i, (label, call) in
                    enumerate(calls.items())}  # fmt: skip
        self.write(f"runs/{study}.spawn.json", {
            "name": study, "calls": calls, "attempts": attempts, "bound_usd": 12.5, "gpu": "H200", "timeout": 3600,
            "full_ft": False, "modal_retries": 0, **more})  # fmt: skip

    def watch(self, study: str, *states: dict[str, Any]) -> None:
        calls = {f"trial-{i}": {"status": "running", "launched": False, "transient": 0, "call": f"fc-{study}-{i}",
                                **state} for i, state in enumerate(states)}  # fmt: skip
        self.write(f"runs/{study}.watch.json", {"calls": calls})

    def log(self, study: str, *lines: str, trial: str = "00-trial-0") -> Path:
        path = self.root / "runs" / study / trial / "train.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", newline="") as stream:
            stream.writelines(f"{line}\n" for line in lines)
        self._stamp(path)
        return path

    def _stamp(self, path: Path) -> None:
        moment = self.clock.now().timestamp()
        os.utime(path, (moment, moment))

    def lease(self, study: str, *, heartbeat: float, trial: str = "00-trial-0", **more: Any) -> None:
        self.write(f"volumes/kev-leases/{study}/{trial}/attempt.json", {
            "nonce": f"{0:032x}", "attempt": 1, "call_id": "fc-1", "started": heartbeat - 60, "heartbeat": heartbeat,
            "ended": None, "previous": None, **more})  # fmt: skip

    def state(self, session: str, **more: Any) -> None:
        self.write(f"runs/{session}-state.json", {
            "session": session, "authorization_usd": 200, "reserve_usd": 20, "baseline_usd": 1000.5,
            "readings": [{"at": "2027-03-28T00:00:00Z", "metered_usd": 1010.75}], "studies": {}, **more})  # fmt: skip


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def checkout(tmp_path: Path, clock: HeldClock) -> Checkout:
    return Checkout(tmp_path, clock)


class Watching:
    """An observer of a checkout, made when it is first asked."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._observers: dict[str, Observer] = {}

    def __call__(self, argument: str = ".") -> Observer:
        if argument not in self._observers:
            root = self._checkout.root
            target = resolve(argument, root=root, cwd=root)
            self._observers[argument] = Observer(target, clock=self._checkout.clock)
        return self._observers[argument]


@pytest.fixture
def watching(checkout: Checkout) -> Iterator[Watching]:
    yield (watched := Watching(checkout))
    for observer in watched._observers.values():
        observer.close()
