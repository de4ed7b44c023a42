"""Going on with a study: adopt what was started, continue what a timeout ended, score what was only trained."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kev import files
from kev.compute.protocol import CallRef, Phase
from kev.entrypoints.admission import open_inside
from kev.entrypoints.adoption import adopt_record
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.continuation import Trial, Waits, continue_trial, settle_pending
from kev.entrypoints.names import study_lock
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.units import look_at_study
from kev.errors import DamagedFile, NotFound, Refused
from kev.evaluators import describe, differing
from kev.gate import Gate
from kev.ledger.units import Unit, rescore_id, trial_id
from kev.records.base import read_record
from kev.records.spawn import SpawnRecord
from kev.rounds.deployed import check_deployed
from kev.rounds.trial_orders import Provenance, rescore_order
from kev.suite import Suite
from kev.worker.orders import trial_directory
from kev.worker.sources import source_hashes

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
    gate = open_gate(place)
    with study_lock(place.runs, request.study):
        labels = known_labels(place, gate, request.study)
        chosen = await _choose(place, request, labels)
        await check_deployed(gate, place.app_name, source_hashes(place.root))
        resumption = _Resumption(place, request, suite, gate, provenance_of(place, gate), waits or Waits())
        await resumption.adopt(chosen)
        for remains in chosen:
            try:
                await resumption.resume(remains)
            except (Refused, DamagedFile) as refusal:
                if request.trial:
                    raise
                place.say(f"!!! {refusal}")
        await look_at_study(place, gate, request.study)
    return 0


def known_labels(place: Place, gate: Gate, study: str) -> list[str]:
    """The trials of a study that was launched from here. Raises NotFound, or DamagedFile."""
    units = [unit for unit in gate.ledger.read().of_name(study) if unit.counted]
    if units:
        return [unit.order.label or "" for unit in units]
    return list(read_record(place.runs / f"{study}.spawn.json", SpawnRecord).calls)


async def _choose(place: Place, request: ResumeRequest, labels: list[str]) -> list[Remains]:
    entries = await place.compute.listdir(RUNS_VOLUME, request.study, recursive=True)
    found = {each.trial.label: each for each in remains_of(request.study, [entry.path for entry in entries])}
    for label in labels:
        index = label.rpartition("-")[2]
        if label not in found and label.startswith("trial-") and index.isdecimal():
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
    gate: Gate
    provenance: Provenance
    waits: Waits

    async def adopt(self, chosen: list[Remains]) -> None:
        """Take the study into the ledger if it was launched before there was one."""
        if self.gate.ledger.read().of_name(self.request.study):
            return
        record = read_record(self.place.runs / f"{self.request.study}.spawn.json", SpawnRecord)
        configs = {}
        for remains in chosen:
            if "provenance.json" in remains.names:
                configs[remains.trial.label] = (await self._read_provenance(remains.trial))["config"]
        adopt_record(
            self.gate, record, configs, suite=self.request.suite, transfer=self.request.transfer or None,
            gpu=self.request.gpu, timeout=self.request.timeout, provenance=self.provenance,
        )  # fmt: skip

    def _unit(self, trial: Trial) -> Unit:
        unit = self.gate.ledger.read().by_id.get(trial_id(self.request.study, trial.label))
        if unit is None:
            raise Refused(f"{trial.directory}: is on the volume, and was not launched from here")
        return unit

    async def resume(self, remains: Remains) -> None:
        trial, say = remains.trial, self.place.say
        unit = self._unit(trial)
        adopted = await settle_pending(self.place, self.gate, unit, trial, self.waits)
        if adopted is not None:
            say(f"{trial.directory}: adopted {adopted}, which had been started and not recorded")
        elif remains.is_final:
            say(f"{trial.directory}: over")
        elif "provenance.json" not in remains.names:
            raise Refused(f"{trial.directory}: left nothing on the volume to go on from")
        else:
            await self._go_on(remains, unit)

    async def _go_on(self, remains: Remains, unit: Unit) -> None:
        provenance = await self._provenance(remains.trial)
        if full_weight_of(provenance) and (not remains.is_trained or unit.order.attempts > 1):
            await continue_trial(
                self.place, self.gate, unit, remains.trial, self.waits, beyond_bound=self.request.beyond_bound
            )
        elif remains.is_trained:
            await self._rescore(remains.trial, unit)
        else:
            raise Refused(f"{remains.trial.directory}: a LoRA trial that did not finish training is not continued")

    async def _rescore(self, trial: Trial, unit: Unit) -> None:
        earlier = [each for each in self.gate.ledger.read().by_id.values()
                   if each.order.kind == "rescore" and each.order.remote == trial.directory]  # fmt: skip
        for each in (unit, *earlier):
            if each.live is not None and each.live.call is not None:
                state = await self.place.compute.poll(CallRef(each.live.call))
                if state.phase is Phase.ACTIVE:
                    raise Refused(f"{trial.directory}: call {each.live.call} is still running")
        await look_at_study(self.place, self.gate, self.request.study)
        unit_id = rescore_id(trial.directory, len(earlier))
        order = rescore_order(
            trial.directory, suite=self.request.suite, transfer=self.request.transfer or None, gpu=self.request.gpu,
            timeout=self.request.timeout, provenance=self.provenance,
        )  # fmt: skip
        await self.gate.reserve(unit_id, [(unit_id, order)])
        ref = await self.gate.start(unit_id)
        self.place.say(f"{trial.directory}: scoring again, {ref.id}")

    async def _read_provenance(self, trial: Trial) -> dict[str, Any]:
        path = f"{trial.directory}/provenance.json"
        where = self.place.root / f"{RUNS_VOLUME}:" / path
        data = await self.place.compute.read(RUNS_VOLUME, path, limit=MAX_PROVENANCE_BYTES)
        try:
            value = files.parse_json(data or b"")
        except ValueError as error:
            raise DamagedFile(where, str(error)) from None
        if not isinstance(value, dict) or not isinstance(value.get("config"), dict):
            raise DamagedFile(where, "is no provenance")
        return value

    async def _provenance(self, trial: Trial) -> dict[str, Any]:
        value = await self._read_provenance(trial)
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
