"""The entry points as commands: flags in, lines on stdout, one line on stderr and exit code 1 for what is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from kev import console
from kev.compute.claims import DictClaims
from kev.compute.client import ModalSettings
from kev.compute.leases import CLAIMS_DICT
from kev.compute.modal_compute import ModalCompute
from kev.entrypoints.admission import Request
from kev.entrypoints.agent_run import AgentRequest, run_agent_there
from kev.entrypoints.benchmarks import run_benchmarks
from kev.entrypoints.interpolation import run_interpolation
from kev.entrypoints.locked_test import LockedRequest, run_locked
from kev.entrypoints.mirror import MirrorRequest, run_mirror
from kev.entrypoints.place import Place
from kev.entrypoints.pull import pull_study
from kev.entrypoints.resume import ResumeRequest, resume_study
from kev.entrypoints.study import launch_study
from kev.rounds.blend_orders import BlendRequest


@dataclass(frozen=True, slots=True)
class Commands:
    """One method for each local entry point of modal_app.py, with its arguments in the same order."""

    root: Path
    app_name: str

    def study(
        self, suite: str, plan: str, name: str, gpu: str, existing: str, transfer: str, budget: float, timeout: int,
        detached: bool,
    ) -> None:  # fmt: skip
        request = Request(suite, plan, name, gpu, transfer, existing, budget, timeout)
        self._run(lambda place: launch_study(place, request, detached=detached))

    def pull(self, name: str, weights: bool) -> None:
        self._run(lambda place: pull_study(place, name, weights=weights))

    def resume(
        self, study: str, suite: str, transfer: str, gpu: str, timeout: int, trial: str, beyond_bound: bool
    ) -> None:
        request = ResumeRequest(study, suite, transfer, gpu, timeout, trial, beyond_bound)
        self._run(lambda place: resume_study(place, request))

    def benchmarks(self, jobs: str, gpu: str, timeout: int, owner_allows: str) -> None:
        self._run(lambda place: run_benchmarks(place, jobs, gpu, timeout, owner_allows))

    def locked_test(
        self, trial: str, name: str, decision: str, transfer: str, gpu: str, redo_interrupted: bool, timeout: int,
        memory_mb: int, owner_allows: str,
    ) -> None:  # fmt: skip
        request = LockedRequest(
            trial, name, decision, transfer, gpu, redo_interrupted, timeout, memory_mb, owner_allows
        )
        self._run(lambda place: run_locked(place, request))

    def mirror_snapshots(self, study: str, paths: str, repo: str, force: bool, dry_run: bool) -> None:
        request = MirrorRequest(study, paths, repo, force, dry_run)
        self._run(lambda place: run_mirror(place, request))

    def agent(
        self, agent: str, task: str, model: str, name: str, seconds: int, submissions: int, gpu: str, timeout: int
    ) -> None:
        request = AgentRequest(agent, task, model, name, seconds, submissions, gpu, timeout)
        self._run(lambda place: run_agent_there(place, request))

    def interpolate(
        self, sft: str, prefix: str, alphas: str, base: str, revision: str, study: str, timeout: int, toward: str,
        blend_head: bool,
    ) -> None:  # fmt: skip
        request = BlendRequest(sft, prefix, alphas, base, revision, study, timeout, toward, blend_head)
        self._run(lambda place: run_interpolation(place, request))

    def _run(self, command: Callable[[Place], Awaitable[int]]) -> None:
        """Raises SystemExit with the code of `command` unless that is 0."""
        code = console.run(lambda: asyncio.run(self._attend(command)))
        if code:
            raise SystemExit(code)

    async def _attend(self, command: Callable[[Place], Awaitable[int]]) -> int:
        async with ModalCompute(ModalSettings(app=self.app_name)) as compute:
            return await command(Place(self.root, compute, DictClaims(CLAIMS_DICT), self.app_name, say=console.say))
