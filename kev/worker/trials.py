"""One trial in its container: sources, lease, training, scoring, result; and what is left when any of it fails."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kev import files
from kev.compute.leases import Claims, LeaseRefused
from kev.data.record import DataRecord
from kev.errors import KevError, NotFound, Refused
from kev.records.plan import TrialConfig
from kev.suite import Suite, open_suite
from kev.text import shorten, visible
from kev.trial.job import TrialJob
from kev.worker import models, synthetic
from kev.worker.committer import Committer
from kev.worker.container import Container
from kev.worker.lease import HeartbeatThread, hold_lease
from kev.worker.orders import TrialOrder
from kev.worker.provenance import continued_provenance, new_provenance
from kev.worker.sources import check_sources
from kev.worker.training import CHECKPOINT, TrainingRun, find_trainer
from kev.worker.training_files import train_log

MAX_ERROR = 2000
"""Characters of an exception that failed.json keeps."""


def run_trial(order: TrialOrder, container: Container, claims: Claims, show: Callable[[str], None]) -> dict[str, Any]:
    """Train and score the trial that `order` names, on the runs volume.

    Returns {label, ...}: `refused` with the reason where another attempt holds the trial, `failed` where a full-weight
    trial raised (final, in failed.json), and otherwise what the trial came to. Raises Refused for other sources than
    the launcher's and, as it was written, what a LoRA trial raises.
    """
    hashes = check_sources(order, container)
    try:
        lease = hold_lease(order, container, claims, show)
    except LeaseRefused as refusal:
        show(f"[lease] {refusal}")
        return {"label": order.label, "refused": str(refusal)}
    try:
        return _Trial(order, container, lease, hashes, show).run()
    finally:
        # After the last commit of the runs volume: whoever sees the lease ended sees everything that was written.
        lease.end()


@dataclass
class _Trial:
    order: TrialOrder
    container: Container
    lease: HeartbeatThread
    hashes: dict[str, str]
    show: Callable[[str], None]

    @property
    def directory(self) -> Path:
        return self.container.runs.path / self.order.directory

    def run(self) -> dict[str, Any]:
        self.container.runs.reload()
        ended = self._ended_before()
        if ended is not None:
            return ended
        try:
            self._check_sources_of_before()
        except Refused as refusal:
            # Not a failure of the trial, and not final: with the right sources deployed it can go on.
            return self._refused(refusal)
        committer = Committer(self.container.runs, self.directory, self.show)
        committer.start()
        try:
            return self._train_and_score()
        except Exception as error:
            # Whatever it was: a trial that another attempt holds is not this one's to fail.
            lost = self.lease.lost
            return self._refused(lost) if lost is not None else self._fail(error)
        finally:
            committer.finish(commit=self.lease.lost is None)

    def _ended_before(self) -> dict[str, Any] | None:
        """The answer for a trial that is over already; None for one that is to run."""
        if (self.directory / "failed.json").exists():
            error = files.read_json(self.directory / "failed.json")["error"]
            return {"label": self.order.label, "failed": error}
        if (self.directory / "result.json").exists():
            if self._is_mine():
                # The platform runs the call again whose answer was lost with its container.
                return self._answer(files.read_json(self.directory / "result.json"))
            raise Refused(f"{self.order.directory}: has a result already; a trial is never trained twice")
        is_begun_anew = self.order.attempt == 1 or not self.order.full_weight
        if self.directory.exists() and is_begun_anew and not self._is_mine():
            raise Refused(f"{self.order.directory}: was begun by another launch; a study's name is never used again")
        return None

    def _is_mine(self) -> bool:
        """Whether an earlier run of this very trial made the directory: before a restart by the platform, say."""
        try:
            found = files.read_json(self.directory / "provenance.json")
        except NotFound:
            return False
        return isinstance(found, dict) and self.order.nonce in found.get("nonces", [])

    def _check_sources_of_before(self) -> None:
        """Raises Refused if the trial was begun with other sources or another configuration."""
        with suppress(NotFound):
            continued_provenance(self.directory / "provenance.json", self.order, self.hashes)

    def _train_and_score(self) -> dict[str, Any]:
        order = self.order
        suite = open_suite(self.container.root / order.suite)
        transfer = open_suite(self.container.root / order.transfer) if order.transfer else None
        if order.existing is not None:
            return self._measure(suite, transfer)
        config = TrialConfig.model_validate(order.config)
        continued = (self.directory / "provenance.json").exists()
        provenance = self._write_provenance(suite, synthetic.is_synthetic(config.base))
        what = "continuing" if continued else f"config={files.dump_json_line(order.config).decode().strip()}"
        self.show(f"[{order.label}] {order.gpu or 'cpu'} torch {provenance['torch']} {what}")
        job = TrialJob(self.directory, order.config, suite, transfer, self.container.root)
        if synthetic.is_synthetic(config.base):
            train = partial(self._rehearse, suite)
            result = models.rehearse(
                job, provenance, self.lease.check, self.show, clock=self.container.clock, train=train
            )
        else:
            result = models.train_and_score(
                job, provenance, self.lease.check, self.show, resume=continued, cards=order.cards
            )
        return self._answer(result)

    def _answer(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"label": self.order.label, "objective": result["objective"], "gates_passed": result["gates"]["passed"]}

    def _measure(self, suite: Suite, transfer: Suite | None) -> dict[str, Any]:
        """Score a checkpoint that is there already."""
        place = self.container.place(str(self.order.config.get("existing")))
        checkpoint = place / CHECKPOINT if (place / CHECKPOINT).is_dir() else place
        if not models.is_model(checkpoint):
            raise NotFound(f"{self.order.config.get('existing')}: holds no checkpoint of a model")
        provenance = self._write_provenance(suite, False)
        self.show(f"[{self.order.label}] {self.order.gpu or 'cpu'} torch {provenance['torch']} scoring {place.name}")
        job = TrialJob(self.directory, self.order.config, suite, transfer, self.container.root, checkpoint)
        return self._answer(models.measure(job, provenance, self.lease.check, self.show))

    def _rehearse(
        self, suite: Suite, config: TrialConfig, records: Sequence[DataRecord], directory: Path, **_: object
    ) -> None:
        """Training as `kev.train.run_training` does it, by the synthetic method that the base names."""
        find_trainer(config.base).train(
            TrainingRun(
                config=config,
                records=list(records),
                suite=suite,
                directory=directory,
                shown=f"/runs/{self.order.directory}",
                attempt=self.order.attempt,
                clock=self.container.clock,
                say=train_log(directory / "train.log", self.show),
                check=self.lease.check,
            )
        )

    def _write_provenance(self, suite: Suite, rehearsal: bool) -> dict[str, Any]:
        path = self.directory / "provenance.json"
        try:
            provenance = continued_provenance(path, self.order, self.hashes)
        except NotFound:
            device = "cpu" if rehearsal else models.best_device()
            provenance = new_provenance(self.order, suite, self.hashes, device=device, synthetic=rehearsal)
        files.write_atomic(path, files.dump_json(provenance))
        return provenance

    def _refused(self, why: Refused) -> dict[str, Any]:
        return {"label": self.order.label, "refused": str(why)}

    def _fail(self, error: Exception) -> dict[str, Any]:
        """Put the failure on record. It is final: such a trial is never continued."""
        text = shorten(visible(f"{type(error).__name__}: {error}"), MAX_ERROR)
        if not isinstance(error, KevError):
            traceback.print_exception(error)
        files.write_atomic(self.directory / "failed.json", files.dump_json({"error": text}))
        self.show(f"!!! [{self.order.label}] Error: {text}")
        if not self.order.full_weight:
            raise error
        return {"label": self.order.label, "failed": text}
