"""An emulator with the contract app deployed, and the product's own way to it."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from file_module import load_module

pytest.importorskip("modal", reason="compute is tested with the real client")

from kev.compute.client import ModalSettings, settings_from
from kev.compute.contract import APP, APP_FILE, deploy
from kev.compute.modal_compute import ModalCompute
from kev.compute.protocol import CallRef, CallState, LogLine
from kev.emulator import Emulator, Timings
from kev.emulator.plan import Fault, FaultPlan, parse_plan

QUICK = Timings(interrupt_after=0.3, kill_after=0.6, stop_grace=1.0, keep_warm=10.0, background_commit=0.05,
                crash_backoff=0.01, memory_check=0.05, cap_check=0.02)  # fmt: skip

END_S = 60.0


def load_app() -> ModuleType:
    """A fresh copy of the contract app: its objects remember the server they ran on."""
    return load_module(APP_FILE)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """The client reads its settings from the process environment, and compute forces some: put all back."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("MODAL_", "KEV_"))]:
        del os.environ[name]
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def deployed_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of an emulator to which the contract app was deployed, once for all tests."""
    root = tmp_path_factory.mktemp("plane") / "state"

    async def prepare() -> None:
        async with Emulator(root=root) as plane, ModalCompute(settings_from(plane.environment, APP)) as compute:
            await deploy(compute, lambda _line: None)

    before = dict(os.environ)
    try:
        asyncio.run(prepare())
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert APP_FILE.exists()
    return root


@dataclass
class Place:
    """A running emulator, and compute on it."""

    plane: Emulator
    settings: ModalSettings
    compute: ModalCompute

    async def start(self, function: str, payload: dict[str, Any] | None = None, **options: Any) -> CallRef:
        return await self.compute.spawn(function, payload or {}, run_id=f"run-{function}", **options)

    async def end_of(self, ref: CallRef) -> CallState:
        return await self.compute.poll(ref, wait_s=END_S)

    async def run(self, function: str, payload: dict[str, Any] | None = None) -> CallState:
        return await self.end_of(await self.start(function, payload))

    async def printed(self, ref: CallRef, text: str) -> LogLine:
        """The first line of `ref` that holds `text`."""
        async with aclosing(self.compute.log_stream(idle_s=END_S)) as lines:
            async for line in lines:
                if line.call_id == ref.id and text in line.text:
                    return line
        raise AssertionError(f"{text!r} never printed")

    async def ended(self, ref: CallRef, printed: str) -> CallState:
        """The state of a call that ends right after it printed something, without waiting for its result."""
        await self.printed(ref, printed)
        while not (state := await self.compute.poll(ref)).phase.is_terminal:
            pass
        return state

    def asked(self, rpc: str) -> int:
        """How often `rpc` was called."""
        return self.plane.dispatcher.counts[rpc]

    def fault(self, **fault: Any) -> None:
        self.plane.faults.add(Fault(**fault))


OpenPlace = Callable[..., Awaitable[Place]]


@pytest.fixture
async def open_place(deployed_root: Path, tmp_path: Path) -> AsyncIterator[OpenPlace]:
    """Opens a place of its own for the test, under a fault plan if one is given."""
    opened: list[Place] = []

    async def open_(plan: dict[str, Any] | None = None, **settings: Any) -> Place:
        root = tmp_path / f"plane-{len(opened)}"
        shutil.copytree(deployed_root, root, symlinks=True)
        faults = parse_plan(plan) if plan else FaultPlan()
        plane = Emulator(root=root, faults=faults, timings=QUICK)
        await plane.start()
        given = settings_from(plane.environment, APP)
        found = ModalSettings(
            **{name: getattr(given, name) for name in ModalSettings.__slots__ if name not in settings}, **settings
        )
        opened.append(Place(plane, found, ModalCompute(found)))
        return opened[-1]

    yield open_
    for place in opened:
        await place.compute.aclose()
        await place.plane.stop()


@pytest.fixture
async def place(open_place: OpenPlace) -> Place:
    return await open_place()
