"""An emulator, a client of it, and the app of the tests deployed to it, all in this process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from file_module import load_module

modal = pytest.importorskip("modal", reason="the emulator is tested with the client it emulates for")

from kev.emulator import Emulator, Timings  # noqa: E402
from kev.emulator.plan import FaultPlan, parse_plan  # noqa: E402

APP_FILE = Path(__file__).parents[2] / "fixtures" / "emulator" / "night_app.py"

QUICK = Timings(interrupt_after=0.3, kill_after=0.6, stop_grace=1.0, keep_warm=10.0, background_commit=0.05,
                crash_backoff=0.01, memory_check=0.05, cap_check=0.02)  # fmt: skip
"""Delays that a test can wait for."""


def load_app() -> ModuleType:
    """A fresh copy of the app's module: its objects remember the server they were deployed to."""
    return load_module(APP_FILE)


@dataclass
class Night:
    """A running emulator with a client and the deployed app."""

    plane: Emulator
    client: Any
    app_id: str = ""

    def function(self, name: str, **options: Any) -> Any:
        found = modal.Function.from_name("night", name, client=self.client)
        return found.with_options(**options) if options else found

    async def spawn(self, name: str, *arguments: Any, **options: Any) -> Any:
        return await self.function(name, **options).spawn.aio(*arguments)

    async def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        return await (await self.spawn(name, *arguments, **options)).get.aio(timeout=60)

    def volume(self) -> Any:
        return modal.Volume.from_name("night-runs", client=self.client)

    def volume_id(self, name: str) -> str:
        return next(each.id for each in self.plane.store.volumes.values() if each.name == name)

    async def volume_names(self) -> list[str]:
        return sorted([entry.path async for entry in self.volume().iterdir.aio("/", recursive=True)])

    async def volume_text(self, name: str) -> str:
        return b"".join([part async for part in self.volume().read_file.aio(name)]).decode()

    async def deploy(self) -> None:
        deployed = await load_app().app.deploy.aio(client=self.client)
        self.app_id = deployed.app_id

    async def printed(self, text: str, times: int = 1) -> None:
        """Return once `text` has appeared in the app's log `times` times."""
        log = self.plane.book[self.app_id]
        while True:
            ear = log.bell.listen()
            if sum(line.text.count(text) for line in log.lines) >= times:
                return
            assert await ear.wait(20), f"{text!r} never printed; log: {[line.text for line in log.lines]}"

    async def container_count(self) -> int:
        return len(self.plane.scheduler.containers)

    async def no_containers(self) -> None:
        """Return once no container is left."""
        while self.plane.scheduler.containers:
            ear = self.plane.book[self.app_id].bell.listen()
            if self.plane.scheduler.containers:
                await ear.wait(60)


async def modal_command(*arguments: str, cwd: Path) -> str:
    """What `modal ...` prints, run with the environment of the emulator and nothing else of the kind."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "modal", *arguments, cwd=cwd, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "HOME": str(cwd)},
    )  # fmt: skip
    out, error = await process.communicate()
    assert process.returncode == 0, f"modal {' '.join(arguments)}: {out.decode()}{error.decode()}"
    return out.decode()


class Pipe:
    """A named pipe on which functions of the app wait."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        os.mkfifo(path)

    def release(self, text: str = "released", readers: int = 1) -> None:
        for _ in range(readers):
            Path(self.path).write_text(text)


@pytest.fixture
def pipe(tmp_path: Path) -> Pipe:
    return Pipe(tmp_path / "pipe")


Begin = Callable[..., Awaitable[Night]]


@pytest.fixture
async def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Begin]:
    """Start an emulator with a plan and arguments of the test's own; everything is stopped afterwards."""
    nights: list[Night] = []

    async def start(plan: dict[str, Any] | None = None, *, deploy: bool = True, **arguments: Any) -> Night:
        faults = parse_plan(plan) if plan else FaultPlan()
        arguments = {"root": tmp_path / "plane", "timings": QUICK, "faults": faults, **arguments}
        plane = Emulator(**arguments)
        await plane.start()
        night = Night(plane, None)
        nights.append(night)
        for name, value in plane.environment.items():
            monkeypatch.setenv(name, value)
        night.client = await modal.Client.from_credentials.aio(
            plane.credentials.token_id, plane.credentials.token_secret
        )
        if deploy:
            await night.deploy()
        return night

    yield start
    for night in nights:
        if night.client is not None:
            await night.client.__aexit__(None, None, None)
        await night.plane.stop()


@pytest.fixture
async def night(begin: Begin) -> Night:
    return await begin()
