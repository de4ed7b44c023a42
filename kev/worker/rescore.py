"""Scoring a trial again whose training is done and whose result was never written: its container died in between."""

from collections.abc import Callable
from typing import Any

from kev import files
from kev.errors import NotFound, Refused
from kev.evaluators import describe, differing, is_evaluator_file
from kev.suite import open_suite
from kev.trial.job import TrialJob
from kev.worker import models
from kev.worker.container import Container
from kev.worker.orders import RescoreOrder
from kev.worker.sources import check_sources, source_hashes
from kev.worker.training import CHECKPOINT


def run_rescore(order: RescoreOrder, container: Container, show: Callable[[str], None]) -> dict[str, Any]:
    """Make the in-trial reads and the result of a trained trial, and commit them.

    Raises Refused where there is a result or a failure already, where training did not end, or where the suite or the
    sources of evaluation are not those the trial began with.
    """
    check_sources(order, container)
    container.runs.reload()
    directory = container.place(f"{order.study}/{order.directory}")
    for final in ("result.json", "failed.json"):
        if (directory / final).exists():
            raise Refused(f"{order.study}/{order.directory}: has a {final} already, and it is final")
    if not (directory / CHECKPOINT / "training_metrics.json").exists():
        raise Refused(f"{order.study}/{order.directory}: its training did not end, so there is nothing to score")
    suite = open_suite(container.root / order.suite)
    provenance = _resumed_provenance(order, container, suite.sha256)
    transfer = open_suite(container.root / order.transfer) if order.transfer else None
    job = TrialJob(directory, provenance["config"], suite, transfer, container.root)
    try:
        if models.is_model(directory / CHECKPOINT):
            result = models.train_and_score(job, provenance, lambda: None, show, resume=True)
        else:
            result = models.rehearse(job, provenance, lambda: None, show, clock=container.clock)
    finally:
        container.runs.commit()
    return _answer(order, result)


def _answer(order: RescoreOrder, result: dict[str, Any]) -> dict[str, Any]:
    return {"label": order.directory, "objective": result["objective"], "gates_passed": result["gates"]["passed"]}


def _resumed_provenance(order: RescoreOrder, container: Container, suite_sha256: str) -> dict[str, Any]:
    trial = f"{order.study}/{order.directory}"
    try:
        provenance: dict[str, Any] = files.read_json(container.place(trial) / "provenance.json")
    except NotFound:
        raise Refused(f"{trial}: has no provenance, so nothing says what it was trained with") from None
    if provenance.get("suite_sha256") != suite_sha256:
        raise Refused(f"{trial}: was trained on another suite than {order.suite}")
    hashes = source_hashes(container.root)
    changed = differing(provenance["source_hashes"], hashes)
    evaluation = [path for path in changed if is_evaluator_file(path)]
    if evaluation:
        raise Refused(f"{trial}: cannot be scored again, what evaluates it has changed: {describe(evaluation)}")
    return provenance | {
        "eval_device": models.best_device() if models.is_model(container.place(trial) / CHECKPOINT) else "cpu",
        "resumed_evaluation": True,
        "resumed_source_hashes": hashes,
        "resumed_with_changed_non_evaluator_files": changed,
        "resumed_git_commit": order.git_commit,
    }
