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
from kev.entrypoints.benchmarks import run_benchmarks
from kev.entrypoints.locked_test import LockedRequest, run_locked
from kev.entrypoints.place import Place
from kev.entrypoints.pull import pull_study
from kev.entrypoints.resume import ResumeRequest, resume_study
from kev.entrypoints.study import launch_study
from kev.errors import Refused, UsageError
from kev.text import visible

NO_MODELS = "needs the model package, which this version of kev does not have; nothing was started"


def say(line: str) -> None:
    print(visible(line), flush=True)


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

    def benchmarks(self, jobs: str, gpu: str, timeout: int) -> None:
        self._run(lambda place: run_benchmarks(place, jobs, gpu, timeout))

    def locked_test(
        self, trial: str, name: str, decision: str, transfer: str, gpu: str, redo_interrupted: bool, timeout: int,
        memory_mb: int,
    ) -> None:  # fmt: skip
        request = LockedRequest(trial, name, decision, transfer, gpu, redo_interrupted, timeout, memory_mb)
        self._run(lambda place: run_locked(place, request))

    def mirror_snapshots(self, study: str, paths: str, repo: str, force: bool, dry_run: bool) -> None:
        del force
        if not study and not paths:
            self._refuse(UsageError("mirror_snapshots: name a --study or --paths"))
        what = f"the dry run for {repo}" if dry_run else f"uploading to {repo}"
        self._refuse(Refused(f"mirror_snapshots: {what} {NO_MODELS}"))

    def interpolate(
        self, sft: str, prefix: str, alphas: str, base: str, revision: str, study: str, timeout: int, toward: str,
        blend_head: bool,
    ) -> None:  # fmt: skip
        del prefix, alphas, base, revision, study, timeout
        if not sft.startswith("/runs/"):
            self._refuse(UsageError(f"--sft {sft!r:.100}: write a checkpoint under /runs/"))
        if blend_head and not toward:
            self._refuse(UsageError("--blend-head needs --toward"))
        self._refuse(Refused(f"interpolate: mixing checkpoints {NO_MODELS}"))

    def _run(self, command: Callable[[Place], Awaitable[int]]) -> None:
        """Raises SystemExit with the code of `command` unless that is 0."""
        code = console.run(lambda: asyncio.run(self._attend(command)))
        if code:
            raise SystemExit(code)

    async def _attend(self, command: Callable[[Place], Awaitable[int]]) -> int:
        async with ModalCompute(ModalSettings(app=self.app_name)) as compute:
            return await command(Place(self.root, compute, DictClaims(CLAIMS_DICT), self.app_name, say=say))

    def _refuse(self, refusal: Refused | UsageError) -> None:
        def raise_it() -> int:
            raise refusal

        raise SystemExit(console.run(raise_it))
