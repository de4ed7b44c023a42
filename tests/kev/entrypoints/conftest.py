"""A checkout with small suites and plans, and a place where work only seems to run: calls are counted, not made."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from small_suite import write_suites

from kev.compute.errors import RemoteError
from kev.compute.protocol import AppState, CallRef, CallState, Entry, EntryKind, Phase, PullReport
from kev.entrypoints.place import Place
from kev.errors import NotFound
from kev.ledger.book import Ledger
from kev.ledger.units import Unit
from kev.worker.sources import source_hashes

LORA: dict[str, Any] = {"base": "synthetic/linear", "base_revision": "0" * 40, "lr": 1e-3}
FULL = {**LORA, "full_ft": 1, "weights_dtype": "bf16"}
NOW = datetime(2027, 3, 1, 23, 0, tzinfo=UTC)


@dataclass
class StillClock:
    """A clock that moves when it is told to."""

    moment: datetime = NOW
    seconds: float = 0.0

    async def pause(self, _seconds: float) -> None:
        """Takes no time, and moves the clock by ten seconds."""
        self.seconds += 10

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class ScriptedCompute:
    """The methods of `Compute` that entry points use, over dictionaries."""

    hashes: dict[str, str]
    spawned: list[tuple[str, dict[str, Any], str | None, int | None]] = field(default_factory=list)
    refuse: list[RemoteError | None] = field(default_factory=list)
    """Raised by the next spawns of trials and reads, one each; None lets one through."""
    on_spawn: Callable[[dict[str, Any]], None] = lambda _: None
    states: dict[str, CallState] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    """`volume:path` to contents."""
    pulled: list[str] = field(default_factory=list)
    memory: list[int | None] = field(default_factory=list)
    """What each spawn asked for, in MiB."""
    deployed: bool = True

    async def spawn(
        self, function: str, payload: Any, *, run_id: str, gpu: str | None = None, timeout_s: int | None = None,
        memory_mb: int | None = None,
    ) -> CallRef:  # fmt: skip
        if function == "remote_source_hashes":
            return CallRef("fc-hashes")
        self.on_spawn(dict(payload))
        refusal = self.refuse.pop(0) if self.refuse else None
        if refusal is not None:
            raise refusal
        self.spawned.append((function, dict(payload), gpu, timeout_s))
        self.memory.append(memory_mb)
        return CallRef(f"fc-{len(self.spawned)}")

    async def app(self) -> AppState | None:
        return AppState("ap-1", "kev-tests", 1, None, ()) if self.deployed else None

    async def poll(self, ref: CallRef, *, wait_s: float = 0) -> CallState:
        if ref.id == "fc-hashes":
            return CallState(Phase.SUCCEEDED, NOW, result=self.hashes)
        return self.states.get(ref.id, CallState(Phase.SUCCEEDED, NOW, result={}))

    async def listdir(self, volume: str, path: str, *, recursive: bool = False) -> list[Entry]:
        names = [name.partition(":")[2] for name in self.files if name.startswith(f"{volume}:{path}/")]
        return [Entry(name, EntryKind.FILE, 1, 0) for name in names]

    async def read(self, volume: str, path: str, *, limit: int) -> bytes | None:
        return self.files.get(f"{volume}:{path}")

    async def pull(self, volume: str, path: str, dest: Path, *, weights: bool = False, on_progress: Any = None) -> Any:
        found = {name: data for name, data in self.files.items() if name.startswith(f"{volume}:{path.strip('/')}/")}
        if not found:
            raise NotFound(path)
        self.pulled.append(path)
        for name, data in found.items():
            target = dest / name.removeprefix(f"{volume}:{path.strip('/')}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return PullReport(fetched=tuple(found))


class SetOfClaims:
    def __init__(self) -> None:
        self.keys: set[str] = set()

    def put_new(self, key: str) -> bool:
        self.keys.add(key)
        return True

    def has(self, key: str) -> bool:
        return key in self.keys


@dataclass
class Desk:
    """A launcher's machine."""

    place: Place
    compute: ScriptedCompute
    claims: SetOfClaims
    clock: StillClock
    lines: list[str]

    @property
    def root(self) -> Path:
        return self.place.root

    def write_plan(self, *configs: dict[str, Any], name: str = "plan.json") -> str:
        (self.root / name).write_text(json.dumps(configs))
        return name

    def spawn_record(self, study: str = "night") -> Any:
        return json.loads((self.root / "runs" / f"{study}.spawn.json").read_text())

    def units(self) -> dict[str, Unit]:
        """What the ledger holds, as another process reads it, but for the questions for sources."""
        return {name: unit for name, unit in Ledger(self.root / "runs").read().by_id.items()
                if unit.order.kind != "sources"}  # fmt: skip

    def put(self, path: str, value: Any, volume: str = "kev-runs") -> None:
        self.compute.files[f"{volume}:{path}"] = json.dumps(value).encode()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    write_suites(tmp_path)
    (tmp_path / "kev").mkdir()
    (tmp_path / "kev" / "__init__.py").write_text("")
    lines: list[str] = []
    compute, claims, clock = ScriptedCompute(source_hashes(tmp_path)), SetOfClaims(), StillClock()
    place = Place(tmp_path, compute, claims, "kev-tests", clock, lines.append, clock.pause)  # type: ignore[arg-type]
    return Desk(place, compute, claims, clock, lines)
