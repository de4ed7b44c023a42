"""Going on with a study: adopt what was started, continue what a timeout ended, score what was only trained."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kev import files
from kev.compute.protocol import CallRef, Phase
from kev.entrypoints.admission import open_inside
from kev.entrypoints.continuation import Trial, Waits, continue_trial, settle_pending
from kev.entrypoints.deployed import check_deployed_sources
from kev.entrypoints.ledger import Ledger, study_lock
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.errors import DamagedFile, NotFound, Refused
from kev.suite import Suite
from kev.worker.container import git_commit
from kev.worker.orders import RESCORE_FUNCTION, RescoreOrder, TrialOrder, trial_directory
from kev.worker.sources import describe, differing, source_hashes

TRIAL = re.compile(r"(?P<index>[0-9]+)-(?P<label>.+)")
MAX_PROVENANCE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """What the command line asks for. `trial` is a label; empty means every trial of the study."""

    study: str
    suite: str
    transfer: str
    gpu: str
    timeout: int
    trial: str = ""
    beyond_bound: bool = False


@dataclass(frozen=True, slots=True)
class Remains:
    """What a trial left on the volume."""

    trial: Trial
    names: frozenset[str]
    """Its files and directories, relative to it."""

    @property
    def is_final(self) -> bool:
        return "result.json" in self.names or "failed.json" in self.names

    @property
    def is_trained(self) -> bool:
        return "checkpoint/training_metrics.json" in self.names


async def resume_study(place: Place, request: ResumeRequest, waits: Waits | None = None) -> int:
    """Resume one trial or all of a study; of all, those that are refused are named and passed over. Returns 0.

    Raises Refused or DamagedFile for the one that was named, NotFound for a study that was never launched from here,
    LockHeld, or a RemoteError.
    """
    suite = open_inside(place.root, request.suite, "--suite")
    if request.transfer:
        open_inside(place.root, request.transfer, "--transfer")
    with study_lock(place.runs, request.study):
        ledger = Ledger.read(place.runs, request.study)
        chosen = await _choose(place, request, ledger)
        sources = await check_deployed_sources(place)
        resumption = _Resumption(place, request, suite, ledger, sources, waits or Waits())
        for remains in chosen:
            try:
                await resumption.resume(remains)
            except (Refused, DamagedFile) as refusal:
                if request.trial:
                    raise
                place.say(f"!!! {refusal}")
    return 0


async def _choose(place: Place, request: ResumeRequest, ledger: Ledger) -> list[Remains]:
    entries = await place.compute.listdir(RUNS_VOLUME, request.study, recursive=True)
    found = {each.trial.label: each for each in remains_of(request.study, [entry.path for entry in entries])}
    for label in ledger.record.calls:
        index = label.rpartition("-")[2]
        if label not in found and index.isdecimal():
            directory = f"{request.study}/{trial_directory(int(index))}"
            found[label] = Remains(Trial(label, directory), frozenset())
    if not request.trial:
        return sorted(found.values(), key=lambda each: each.trial.directory)
    if request.trial not in found:
        known = ", ".join(sorted(found)) or "none"
        raise NotFound(f"study {request.study}: has no trial {request.trial!r:.80}; there are: {known}")
    return [found[request.trial]]


def remains_of(study: str, paths: Iterable[str]) -> list[Remains]:
    """The trials among the paths of a study's volume directory."""
    trials: dict[str, set[str]] = {}
    for path in paths:
        name, _, rest = path.removeprefix(f"{study}/").partition("/")
        if TRIAL.fullmatch(name):
            trials.setdefault(name, set()).add(rest)
    return [
        Remains(Trial(match["label"], f"{study}/{name}"), frozenset(rests))
        for name, rests in sorted(trials.items())
        if (match := TRIAL.fullmatch(name))
    ]


@dataclass
class _Resumption:
    place: Place
    request: ResumeRequest
    suite: Suite
    ledger: Ledger
    sources: str
    waits: Waits

    async def resume(self, remains: Remains) -> None:
        trial, say = remains.trial, self.place.say
        adopted = await settle_pending(self.place, self.ledger, trial, self.waits)
        if adopted is not None:
            say(f"{trial.directory}: adopted {adopted}, which had been started and not recorded")
        elif remains.is_final:
            say(f"{trial.directory}: over")
        elif "provenance.json" not in remains.names:
            raise Refused(f"{trial.directory}: left nothing on the volume to go on from")
        else:
            await self._go_on(remains)

    async def _go_on(self, remains: Remains) -> None:
        provenance = await self._provenance(remains.trial)
        if full_weight_of(provenance) and (not remains.is_trained or self.ledger.record.has_ledger):
            order = self._order(remains.trial, provenance)
            await continue_trial(
                self.place, self.ledger, remains.trial, order, self.waits, beyond_bound=self.request.beyond_bound,
                gpu=self.request.gpu, timeout=self.request.timeout,
            )  # fmt: skip
        elif remains.is_trained:
            await self._rescore(remains.trial)
        else:
            raise Refused(f"{remains.trial.directory}: a LoRA trial that did not finish training is not continued")

    async def _rescore(self, trial: Trial) -> None:
        call = self.ledger.record.calls.get(trial.label)
        if call is not None:
            state = await self.place.compute.poll(CallRef(call))
            if state.phase is Phase.ACTIVE:
                raise Refused(f"{trial.directory}: call {call} is still running")
        order = RescoreOrder(
            run_id=f"{trial.directory}/rescore", sources=self.sources, git_commit=git_commit(self.place.root),
            study=self.request.study, directory=trial.directory.partition("/")[2], suite=self.request.suite,
            transfer=self.request.transfer or None,
        )  # fmt: skip
        ref = await self.place.compute.spawn(
            RESCORE_FUNCTION, order.to_json(), run_id=order.run_id, gpu=self.request.gpu, timeout_s=self.request.timeout
        )
        self.ledger.point(trial.label, ref.id)
        self.place.say(f"{trial.directory}: scoring again, {ref.id}")

    def _order(self, trial: Trial, provenance: dict[str, Any]) -> TrialOrder:
        index = TRIAL.fullmatch(trial.directory.partition("/")[2])
        assert index is not None, "remains_of keeps only directories that match"
        return TrialOrder(
            run_id=trial.directory, sources=self.sources, git_commit=git_commit(self.place.root),
            study=self.request.study, index=int(index["index"]), config=provenance["config"], suite=self.request.suite,
            transfer=self.request.transfer or None, nonce="", gpu=self.request.gpu,
        )  # fmt: skip

    async def _provenance(self, trial: Trial) -> dict[str, Any]:
        path = f"{trial.directory}/provenance.json"
        where = self.place.root / f"{RUNS_VOLUME}:" / path
        data = await self.place.compute.read(RUNS_VOLUME, path, limit=MAX_PROVENANCE_BYTES)
        try:
            value = files.parse_json(data or b"")
        except ValueError as error:
            raise DamagedFile(where, str(error)) from None
        if not isinstance(value, dict) or not isinstance(value.get("config"), dict):
            raise DamagedFile(where, "is no provenance")
        if value.get("suite_sha256") != self.suite.sha256:
            raise Refused(f"{trial.directory}: was trained on another suite than --suite {self.request.suite}")
        changed = differing(value.get("source_hashes") or {}, source_hashes(self.place.root))
        if full_weight_of(value) and changed:
            raise Refused(
                f"{trial.directory}: was begun with other sources, and goes on only with them: {describe(changed)}"
            )
        return value


def full_weight_of(provenance: dict[str, Any]) -> bool:
    """Whether the trial trains all weights."""
    return bool(provenance["config"].get("full_ft") == 1)
