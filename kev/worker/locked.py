"""The one read of the test partitions: what has been read under a name is never read again."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, NotFound, Refused, UsageError
from kev.reads.records import select_partition
from kev.suite import open_suite
from kev.worker.container import Container
from kev.worker.models import read_checkpoint
from kev.worker.orders import UNGATED, LockedOrder
from kev.worker.sources import check_sources
from kev.worker.training import CHECKPOINT

LOCKED = "locked"
SUMMARISED = ("clean", "tasks", "paired_flip", "variants", "permutation", "coverage")


def run_locked_test(order: LockedOrder, container: Container, show: Callable[[str], None]) -> dict[str, Any]:
    """Read the test partitions that `order` names and that its name has not read, and commit them with a summary.

    Returns the summary. The summary of what was read is written and committed even where a later suite fails. Raises
    Refused as `plan_read` does, or for other sources than the launcher's.
    """
    check_sources(order, container)
    container.runs.reload()
    trial, out = container.place(order.trial), container.runs.path / LOCKED / order.name
    result = _result(trial)
    check_gates(order, result)
    plan = plan_read(order, out)
    summary = plan.summary | _head(order, trial, result)
    for label in plan.interrupted:
        files.remove_tree(out / label)
    if plan.interrupted:
        summary["interrupted_reads_redone"] = [*summary.get("interrupted_reads_redone", []), *plan.interrupted]
    if plan.is_resumed:
        summary["resumed_for"] = list(plan.labels)
    try:
        for label in plan.labels:
            summary["suites"][label] = _read(label, plan.labels[label], container, out, trial / CHECKPOINT, show)
    finally:
        files.write_atomic(out / "summary.json", files.dump_json(summary))
        container.runs.commit()
    return summary


@dataclass(frozen=True, slots=True)
class LockedPlan:
    """What is still to be read under a locked name."""

    labels: dict[str, str]
    """`decision` and `transfer` to the suites' paths; those that were read already are left out."""
    interrupted: list[str]
    """Suites with a directory and no entry in the summary: a read that died. They are read anew."""
    is_resumed: bool
    summary: dict[str, Any]


def plan_read(order: LockedOrder, out: Path) -> LockedPlan:
    """What `order` may read into `out`.

    Raises Refused if nothing is left to read, or if an interrupted read is there and was not asked to be redone.
    """
    wanted = {label: suite for label in ("decision", "transfer") if (suite := getattr(order, label))}
    if not wanted:
        raise UsageError(f"locked read {order.name}: name a decision or a transfer suite")
    try:
        summary = files.read_json(out / "summary.json")
    except NotFound:
        summary = {"suites": {}}
    done = summary.get("suites", {}) if isinstance(summary, dict) else None
    if not isinstance(done, dict):
        raise DamagedFile(out / "summary.json", "does not say which suites were read; a locked test is read once")
    left = {label: suite for label, suite in wanted.items() if label not in done}
    if not left:
        raise Refused(f"locked read {order.name}: {' and '.join(wanted)} have been read; a locked test is read once")
    interrupted = [label for label in left if (out / label).exists()]
    if interrupted and not order.redo_interrupted:
        raise Refused(
            f"locked read {order.name}: {' and '.join(interrupted)} was begun and not summarised; whether to read it "
            "again is a decision: --redo-interrupted"
        )
    return LockedPlan(left, interrupted, bool(done), summary)


def check_gates(order: LockedOrder, result: dict[str, Any] | None) -> None:
    """Raises Refused where a trial without passed gates would be read under a name that does not say so."""
    gates = (result or {}).get("gates") or {}
    if gates.get("passed") is not True and not order.name.endswith(UNGATED):
        why = "has no result" if result is None else "did not pass its in-trial gates"
        raise Refused(f"locked read {order.name}: {order.trial} {why}, so the name must end in {UNGATED}")


def _result(trial: Path) -> dict[str, Any] | None:
    try:
        found = files.read_json(trial / "result.json")
    except NotFound:
        return None
    return found if isinstance(found, dict) else {}


def _head(order: LockedOrder, trial: Path, result: dict[str, Any] | None) -> dict[str, Any]:
    sha256 = hashlib.sha256(files.read_bytes(trial / "result.json")).hexdigest() if result is not None else None
    return {
        "trial": order.trial,
        "trial_result_sha256": sha256,
        "temperature": (result or {}).get("temperature", 1.0),
        "git_commit": order.git_commit,
    }


def _read(
    label: str, path: str, container: Container, out: Path, checkpoint: Path, show: Callable[[str], None]
) -> dict[str, Any]:
    suite = open_suite(container.root / path)
    selection = select_partition(suite, "test", allow_test=True)
    report = read_checkpoint(
        checkpoint, selection, out / label, show, name=container.shown(checkpoint), temperature=1.0
    )
    return {"suite": path, "suite_sha256": suite.sha256, **{name: report[name] for name in SUMMARISED}}
