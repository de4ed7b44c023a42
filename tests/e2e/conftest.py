"""A checkout, an emulator in a thread of its own, and the stock command line of Modal against it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("modal", reason="the command line of Modal is what is tried here")

from kev.compute.client import settings_from
from kev.compute.modal_compute import ModalCompute
from kev.data import dates, levels, policies
from kev.data.freeze import freeze
from kev.data.suites import Ingredient, SuitePlan
from kev.emulator import Emulator, Timings
from kev.emulator.plan import ContainerEvent, Fault

REPOSITORY = Path(__file__).parents[2]
APP = "kev-night"
QUICK = Timings(stop_grace=1.0, keep_warm=10.0, background_commit=0.2)
DEADLINE_S = 180.0
"""For what must happen; a busy machine is slow, and nothing here measures how slow."""

SUITES = (
    SuitePlan(
        "small-v1", "A few records of two kinds.", seed=51,
        ingredients=(
            Ingredient(levels.generate, (levels.SOURCE,), {"train": 20, "calibration": 6, "development": 6, "test": 6}),
            Ingredient(dates.generate, (dates.SOURCE,), {"train": 20, "calibration": 6, "development": 6, "test": 6}),
        ),
        trainable=(levels.SOURCE, dates.SOURCE), held_out=(policies.HELD_OUT_SOURCE,),
    ),
    SuitePlan(
        "small-transfer-v1", "A few records that are not trained on.", seed=52,
        ingredients=(
            Ingredient(policies.generate_held_out, (policies.HELD_OUT_SOURCE,), {"development": 4, "test": 4}),
        ),
    ),
)  # fmt: skip

Answer = TypeVar("Answer")


class EmulatorThread:
    """An emulator that runs while the test does other things."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        assert self._ready.wait(DEADLINE_S), "the emulator did not start"

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        async with Emulator(self._root, timings=QUICK) as self.plane:
            self.environment = self.plane.environment
            self._ready.set()
            await self._stop.wait()

    def add(self, fault: Fault) -> None:
        self._loop.call_soon_threadsafe(self.plane.faults.add, fault)

    def arm(self, event: ContainerEvent) -> None:
        self._loop.call_soon_threadsafe(self.plane.terminator.arm, event)

    def clear(self) -> None:
        self._loop.call_soon_threadsafe(self.plane.faults.clear)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()


@dataclass
class Night:
    """A launcher's machine and the place where its work runs."""

    root: Path
    emulator: EmulatorThread

    @property
    def environment(self) -> dict[str, str]:
        own = {"KEV_APP_NAME": APP, "PYTHONPATH": str(self.root), "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "400"}
        return os.environ | self.emulator.environment | own

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "modal", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.root, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def modal(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """What `modal ARGUMENTS` prints, having ended with `code`."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{out}\n{err}"
        return out, err

    def run(self, entry: str, *arguments: str, code: int = 0) -> tuple[str, str]:
        return self.modal("run", f"modal_app.py::{entry}", *arguments, code=code)

    def ask(self, question: Callable[[ModalCompute], Coroutine[Any, Any, Answer]]) -> Answer:
        """What the compute client answers to `question`."""

        async def asking() -> Answer:
            async with ModalCompute(settings_from(self.emulator.environment, app=APP)) as compute:
                return await question(compute)

        return asyncio.run(asking())

    def spawn_record(self, study: str) -> Any:
        return json.loads((self.root / "runs" / f"{study}.spawn.json").read_text())

    def volume_file(self, path: str, volume: str = "kev-runs") -> bytes | None:
        return self.ask(lambda compute: compute.read(volume, path, limit=10_000_000))

    def until(self, what: Callable[[], Answer | None]) -> Answer:
        """The first answer of `what` that is one."""
        end, between_looks = time.monotonic() + DEADLINE_S, threading.Event()
        while time.monotonic() < end:
            answer = what()
            if answer:
                return answer
            between_looks.wait(0.02)
        raise AssertionError("it never happened")


@pytest.fixture(scope="session")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """The deployed app: one for all, since each deployment takes seconds."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(REPOSITORY / "kev", root / "kev", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("modal_app.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, root / name)
    for plan in SUITES:
        freeze(root / "evals", plan)
    emulator = EmulatorThread(tmp_path_factory.mktemp("emulator"))
    try:
        night = Night(root, emulator)
        night.modal("deploy", "modal_app.py")
        yield night
    finally:
        emulator.close()


@pytest.fixture
def own_night(night: Night, tmp_path: Path) -> Night:
    """A checkout of its own, with a session that counts no other test's work, on the same deployed app."""
    root = tmp_path / "checkout"
    shutil.copytree(night.root, root, ignore=shutil.ignore_patterns("runs", ".git"))
    return Night(root, night.emulator)
