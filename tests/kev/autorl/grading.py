"""A grader behind its real server, with an evaluator of our own at the seam: it reads a score off one tensor."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy
import uvicorn
from hand_clock import HandClock
from model_directories import model, tensors, trained

from kev.autorl.evaluation import Asked, Evaluation
from kev.autorl.grader import Grader
from kev.autorl.run import Run
from kev.autorl.server import build_app
from kev.autorl.workspace import Workspace
from kev.clock import Clock
from kev.model.tensors import read_tensors
from kev.serve import bind

BASE = tensors(0)
BASE_SCORE = 20.0
DRAWS = {0: 0.0, 1: 1.0, 2: -1.0}
NORM = "model.norm.weight"


def worth(score: float, seed: int = 1) -> dict[str, Any]:
    """Weights made from the base that the stand-in gives about `score`."""
    weights = trained(BASE, seed)
    weights[NORM] = numpy.full(20, score / BASE_SCORE)
    return weights


@dataclass
class StandIn:
    """Reads the score off a norm's first value, and remembers what it was asked. One at a time, or it fails."""

    identity: str = "stand-in"
    seconds: float = 0.0
    log: Path | None = None
    asked: list[Asked] = field(default_factory=list)
    says: dict[str, Any] = field(default_factory=dict)
    """What an evaluation says instead, as long as it is there."""
    running: int = 0

    async def evaluate(self, asked: Asked) -> Evaluation:
        self.running += 1
        assert self.running == 1, "two evaluations at once"
        try:
            self.asked.append(asked)
            if self.log is not None:
                with self.log.open("a") as stream:
                    stream.write(f"{asked.split} {asked.seed} {asked.model}\n")
            await asyncio.sleep(self.seconds)
            norm = read_tensors(asked.model / "model.safetensors")[NORM]
            score = float(next(norm.values())[0]) * BASE_SCORE + DRAWS[asked.seed]
            facts = {"benchmark": "t", "model_path": str(asked.model), "score": score, "items": 400}
            return Evaluation.model_construct(**(facts | self.says))
        finally:
            self.running -= 1

    @property
    def graded(self) -> list[Asked]:
        """What was asked of submissions while the run lasted."""
        return [each for each in self.asked if each.split == "validation" and each.model.name == "model"]


def run_of(root: Path, **more: Any) -> Run:
    """A run under `root` with a base and an empty workspace."""
    workspace = Workspace(root / "t" / "20270101T000000_agent")
    if not workspace.output.exists():
        workspace.output.mkdir(parents=True)
        model(root / "bases" / "tiny", BASE)
        workspace.models.mkdir()
        (workspace.models / "tiny").symlink_to(root / "bases" / "tiny")
    facts: dict[str, Any] = {
        "workspace": workspace, "home": root / ".grader" / "runs" / "t" / "run", "shared": root / ".grader",
        "task": "t", "base": root / "bases" / "tiny", "timeout_s": 3600.0,
    }  # fmt: skip
    return Run(**(facts | more))


class Client:
    """Speaks to a grading server."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def submit(self, path: str, **more: Any) -> httpx.Response:
        return self.post("/submit", {"model_path": path, **more})

    def score(self, path: str) -> dict[str, Any]:
        response = self.submit(path)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.address + path, headers=self._headers, trust_env=False, verify=False, timeout=60)

    def post(self, path: str, body: Any, headers: Any = None) -> httpx.Response:
        headers = headers or self._headers
        return httpx.post(self.address + path, json=body, headers=headers, trust_env=False, verify=False, timeout=60)


@dataclass
class Served:
    """A server under way."""

    grader: Grader
    client: Client
    address: str
    loop: asyncio.AbstractEventLoop
    clock: HandClock = field(default_factory=HandClock)

    @property
    def workspace(self) -> Workspace:
        return self.grader.run.workspace

    def finish(self) -> dict[str, Any]:
        found = asyncio.run_coroutine_threadsafe(self.grader.finish(), self.loop).result(60)
        return dict(found)


@contextmanager
def served(
    run: Run, evaluator: StandIn, *, token: str | None = None, clock: Clock | None = None, start: bool = True
) -> Iterator[Served]:
    """The real server on a free port, its run begun."""
    listening = bind("127.0.0.1", 0)
    grader = Grader(run, evaluator, clock=clock)
    server = uvicorn.Server(uvicorn.Config(build_app(grader, token=token), log_level="error", access_log=False))
    loops: list[asyncio.AbstractEventLoop] = []
    begun = threading.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        if start:
            await grader.start_clock()
        begun.set()
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    begun.wait()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield Served(grader, Client(address, token), address, loops[0])
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
