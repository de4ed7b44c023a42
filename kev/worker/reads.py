"""A benchmark job: one checkpoint's answers to one partition, under /bench on the runs volume."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, KevError, NotFound, Refused
from kev.reads.assembly import FAILURE
from kev.reads.attempt import Options
from kev.reads.records import Selection, select_file, select_partition
from kev.suite import open_suite
from kev.text import shorten, visible
from kev.worker.container import Container
from kev.worker.flags import ReadOptions, parse_flags
from kev.worker.manifest import MANIFEST
from kev.worker.models import read_checkpoint
from kev.worker.orders import BenchmarkOrder
from kev.worker.sources import check_sources

BENCH = "bench"
CALLS = ".calls"
NOTHING_COVERED = dict.fromkeys(
    ("requested_records", "requested_questions", "evaluated_records", "evaluated_questions", "rejected_records",
     "truncated_records"), 0,
)  # fmt: skip


def run_benchmark(order: BenchmarkOrder, container: Container, show: Callable[[str], None]) -> dict[str, Any]:
    """Read what `order` names into /bench/<name>, and commit it.

    Returns {name, acc, brier} or, with failure.json in the place of a report, {name, failed: {type, message}}. Raises
    Refused where the name has been used, or for other sources than the launcher's.
    """
    check_sources(order, container)
    container.runs.reload()
    out = container.runs.path / BENCH / order.name
    if out.exists():
        if not _is_mine(out, container):
            raise Refused(
                f"/runs/{BENCH}/{order.name}: is there already; a read never replaces another, use a new name"
            )
        answer = _answered(order, out)
        if answer is not None:
            return answer
        files.remove_tree(out)
    if container.call_id is not None:
        files.write_atomic(_maker(out), files.dump_json({"call": container.call_id}))
        container.runs.commit()
    try:
        report = _read(order, container, out, show)
    except Exception as error:
        return _fail(order, container, out, error, show)
    container.runs.commit()
    show(f"saved /runs/{BENCH}/{order.name}")
    return _answer(order, report)


def _answer(order: BenchmarkOrder, report: dict[str, Any]) -> dict[str, Any]:
    return {"name": order.name, "acc": report["clean"]["acc"], "brier": report["clean"]["brier"]}


def _maker(out: Path) -> Path:
    """Which call makes the read `out`: the provider runs a call again if its container is lost."""
    return out.parent / CALLS / f"{out.name}.json"


def _is_mine(out: Path, container: Container) -> bool:
    try:
        made = files.read_json(_maker(out))
    except (NotFound, DamagedFile):
        return False
    return container.call_id is not None and made == {"call": container.call_id}


def _answered(order: BenchmarkOrder, out: Path) -> dict[str, Any] | None:
    """What an earlier container of this call came to; None for one that was cut off."""
    if (out / MANIFEST).exists() and (out / "report.json").exists():
        return _answer(order, files.read_json(out / "report.json"))
    return None


def _read(order: BenchmarkOrder, container: Container, out: Path, show: Callable[[str], None]) -> dict[str, Any]:
    options = parse_flags(order.flags)
    checkpoint = container.place(order.run)
    asked = Options(date_facts=options.date_facts, rotations=options.rotations)
    selection = _selection(order, container, options)
    return read_checkpoint(checkpoint, selection, out, show, name=container.shown(checkpoint), options=asked)


def _selection(order: BenchmarkOrder, container: Container, options: ReadOptions) -> Selection:
    if order.suite.endswith(".jsonl"):
        return select_file(container.root / order.suite)
    suite = open_suite(container.root / order.suite)
    return select_partition(suite, options.split, allow_test=options.allow_test)


def _fail(
    order: BenchmarkOrder, container: Container, out: Path, error: Exception, show: Callable[[str], None]
) -> dict[str, Any]:
    kind, message = type(error).__name__, shorten(visible(str(error)), 500)
    if not (out / FAILURE).exists():  # it failed before anything was asked; a read that began says more about itself
        failure = {"error_type": kind, "error": message, "record_id": None, "coverage": NOTHING_COVERED}
        files.write_atomic(out / FAILURE, files.dump_json(failure))
    container.runs.commit()
    show(
        f"Error: {order.name}: {kind}: {message}" if isinstance(error, KevError) else f"Error: {order.name}: {error!r}"
    )
    return {"name": order.name, "failed": {"type": kind, "message": message}}
