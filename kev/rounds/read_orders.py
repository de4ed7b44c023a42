"""The reads of a round as orders for the gate: which rows an arm needs, and what fetches each."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kev import budget, files
from kev.compute.jobs import BENCH_ROOT, Job, read_timeout
from kev.errors import Refused
from kev.ledger.units import Units, read_id
from kev.records.ledger import Order
from kev.records.spec import DEFAULT_GPU, Read, RoundSpec, Stage, size_of
from kev.rounds.checks.reads import read_split
from kev.rounds.locked_args import parse_locked_arguments
from kev.rounds.once import checkpoint_of, planned_key
from kev.rounds.sides import TRANSFER, Side, candidate_side, parent_side
from kev.rounds.trial_orders import Provenance, Wanted, round_up

RETRIES = 1
VOLUME = "/runs/"


def arm_reads(
    spec: RoundSpec, root: Path, arm: str, provenance: Provenance, *, stage: str | None = None, parents: bool = False
) -> list[Wanted]:
    """The reads of an arm at the rule stage or at `stage`, those whose rows are here included.

    With `parents` its parent's too. Raises Refused for one that cannot be launched.
    """
    at = None if stage is None else spec.confirm[stage]
    sides = [candidate_side(spec, arm, at), *([parent_side(spec, arm, at)] if parents else [])]
    found: dict[str, Order] = {}
    for side in sides:
        for tag, directory in wanted_directories(spec, side, at):
            unit_id, order = _order(spec, root, arm, side, tag, directory, stage, provenance)
            found.setdefault(unit_id, order)
    return sorted(found.items())


def has_landed(root: Path, directory: str) -> bool:
    """Whether the rows of a read are here."""
    return "rows.json" in files.list_names(root / directory)


def wanted_directories(spec: RoundSpec, side: Side, stage: Stage | None) -> Iterator[tuple[str, str]]:
    """(tag, directory) of every read that a stage's panels, or the rule with its pool, look at."""
    at = spec.rule if stage is None else stage
    tags = [tag for panel in at.panels.values() for tag in panel.reads]
    tags += [at.unknowable] if at.unknowable is not None else []
    if stage is None and spec.temperature is not None:
        tags += [*spec.temperature.reads, *(spec.temperature.exclude_reads or [])]
    for tag in dict.fromkeys(tags):
        # The read inside a trial needs no launch; the one declared in its place does.
        actual = side.transfer_read if tag == TRANSFER else tag
        directory = side.directory(tag)
        if actual is not None and directory is not None and actual in spec.reads:
            yield actual, directory


def _order(
    spec: RoundSpec, root: Path, arm: str, side: Side, tag: str, directory: str, stage: str | None,
    provenance: Provenance,
) -> Wanted:  # fmt: skip
    read = spec.reads[tag]
    run = checkpoint_of(side.trial, side.checkpoint)
    if run is None:
        raise Refused(f"{side.name}: has neither a trial nor a checkpoint to read {tag} with")
    common = {"sources": provenance.sources, "git_commit": provenance.commit}
    gpu = spec.gpu or DEFAULT_GPU
    details: dict[str, object] = {"gpu": gpu, "app": spec.app, "session": provenance.session, "round": spec.round,
               "arm": arm, "stage": stage}  # fmt: skip
    if read.entrypoint == "locked_test":
        return _locked(spec, arm, read, run, directory, common, details)
    parts = PurePosixPath(directory).parts
    if len(parts) != 2 or parts[0] != "runs" or read.suite is None:
        raise Refused(f"read {tag} of {side.name}: {directory} is not one directory under runs/; it cannot be launched")
    job = Job(run, read.suite, parts[1], read.flags or "")
    timeout = _timeout(spec, arm, stage) or read_timeout(read.suite)
    once = planned_key(root, read, run) if read_split(read) == "test" else None
    values = {
        "kind": "read",
        "name": job.name,
        "function": "run_bench",
        "payload": {**common, "run": job.run, "suite": job.suite, "name": job.name, "flags": job.flags},
        "timeout": timeout,
        "attempt_usd": round_up(budget.compute_bound(gpu, timeout, 1)),
        "remote": f"{BENCH_ROOT.removeprefix(VOLUME)}/{job.name}",
        "local": directory,
        "once": f"{once.run} {once.suite_sha256} {once.split}" if once else _once(read, run),
    }
    return read_id(directory), Order.model_validate(values | details)


def _locked(
    spec: RoundSpec, arm: str, read: Read, run: str, directory: str, common: dict[str, str | None],
    details: dict[str, object],
) -> Wanted:  # fmt: skip
    parts = PurePosixPath(directory).parts
    if len(parts) != 4 or parts[:2] != ("runs", "locked"):
        raise Refused(f"{directory}: a locked test is read into runs/locked/<name>/<suite>")
    trial = run.removeprefix(VOLUME).removesuffix("/checkpoint")
    given = parse_locked_arguments((spec.locked_args or {}).get(size_of(arm), []))
    values = {
        "kind": "locked",
        "name": f"locked/{parts[2]}",
        "function": "run_locked_test",
        "payload": {**common, "trial": trial, "name": parts[2], "decision": read.decision, "transfer": given.transfer},
        "timeout": given.timeout,
        "memory_mb": given.memory_mb,
        "attempt_usd": round_up(budget.compute_bound(details["gpu"], given.timeout, 1)),
        "remote": f"locked/{parts[2]}",
        "local": f"runs/locked/{parts[2]}",
        "once": f"{run} locked",
    }
    return f"locked/{parts[2]}", Order.model_validate(values | details)


def _timeout(spec: RoundSpec, arm: str, stage: str | None) -> int | None:
    own = spec.confirm[stage].read_timeout if stage is not None else None
    return own or (spec.read_timeout or {}).get(size_of(arm))


def _once(read: Read, run: str) -> str | None:
    # A suite that is not at hand cannot be recognised under another path; its path is then what is read once.
    return f"{run} {read.suite} test" if read_split(read) == "test" else None


def retry_of(order: Order, number: int) -> Order:
    """The same read under a new name: what failed stays where it is, and the rows come to the registered place.

    A blend has one place, in which only what is whole stays. Raises Refused for what may be read a single time.
    """
    if order.once is not None:
        raise Refused(f"{order.name}: a test is read once, and a read that failed may have been one")
    name = f"{order.name}-retry{number}"
    if order.kind == "blend":
        return order.model_copy(update={"name": name})
    payload = {**order.payload, "name": name}
    return order.model_copy(
        update={"name": name, "payload": payload, "remote": f"{PurePosixPath(order.remote).parent}/{name}"}
    )


def next_try(units: Units, unit_id: str, order: Order) -> Wanted | None:
    """A read or a blend that was never wanted, or is wanted and not begun, or the one retry of one that failed."""
    unit = units.by_id.get(unit_id)
    if unit is None or (not unit.counted and not unit.settled):
        return unit_id, order
    if not unit.settled or unit.outcome in ("done", "cancelled", "blocked") or order.once is not None:
        return None
    again = units.by_id.get(retry_id(unit_id))
    if again is None or (not again.counted and not again.settled):
        return retry_id(unit_id), retry_of(order, RETRIES)
    return None


def retry_id(unit_id: str) -> str:
    return f"{unit_id}/retry{RETRIES}"
