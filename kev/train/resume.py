"""Resume points: everything a continuation needs to give the weights that the uninterrupted run would have given.

A point is a directory with a file for each rank, every file written wholly or not at all; latest.json, written by
rank 0 when all of them lie there, acknowledges it, and only then older points go. Whatever moment a kill comes at,
latest.json names a complete point. Random draws are functions of seed and step, so a point holds no random state.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kev import files
from kev.clock import Clock
from kev.errors import DamagedFile, KevError, NotFound, Refused
from kev.records.base import write_record
from kev.records.resume import ResumePoint
from kev.torch_files import load_weights_only
from kev.train.optimizer import Optimizer
from kev.train.parallel import Parallel
from kev.train.points import LATEST, StepDirectory, find_continuation, list_resume_points, rank_name, step_name

FORMAT = 1
PEER_WAIT_SECONDS = 600.0
WRITE_SHARE = 0.05
"""At most this share of the time may be spent standing still for resume points."""

MAPPED_BYTES = 1024**3
"""Files above this are read where they lie instead of being taken into memory first."""

FREE_TO_CHANGE = frozenset({"save_every_steps", "snapshot_every_steps", "snapshot_fractions", "snapshot_hub_repo"})
"""Arguments that say what is kept and not what is trained; a continuation may have others."""


@dataclass(slots=True)
class Counters:
    """What a run has done so far, over all its attempts."""

    step: int = 0
    seen: int = 0
    tokens_seen: int = 0
    elapsed: float = 0.0
    optimizer_seconds: float = 0.0
    peak_mem: int = 0
    attempt: int = 1
    step_seconds: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)
    touched: dict[str, int] = field(default_factory=dict)
    resume_seconds: list[float] = field(default_factory=list)
    resume_write_seconds: list[float] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    threads: int = 1

    def begin_attempt(self, logged: int, given: int | None) -> None:
        """Number this attempt: as `given`, or after the `logged` ones and the one that a resume point is of."""
        self.attempt = given or max(self.attempt if self.step else 0, logged) + 1

    def add_step(
        self, *, records: int, tokens: int, loss: float, grad_norm: float, seconds: float, elapsed: float, peak: int
    ) -> None:
        """Count an optimizer step; `elapsed` is that of the run, and `peak` the bytes of the device."""
        self.step += 1
        self.seen += records
        self.tokens_seen += tokens
        self.elapsed = elapsed
        self.step_seconds.append(round(seconds, 6))
        self.grad_norms.append(grad_norm)
        self.losses.append(loss)
        self.peak_mem = max(self.peak_mem, peak)

    def to_plain(self) -> dict[str, Any]:
        """A copy of the counters as plain values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {name: list(value) if isinstance(value, list) else value for name, value in plain.items()} | {
            "touched": dict(self.touched)
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Counters":
        return cls(**{name: value for name, value in plain.items() if name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class Pace:
    """When a resume point is due: every so many steps, or every so many minutes, stretched if writing is slow."""

    steps: int = 0
    minutes: float = 0.0

    def is_due(self, *, step: int, since_last: float, blocked: float) -> bool:
        """`since_last` seconds have gone by since the last point, which kept training waiting `blocked` of them."""
        if self.steps:
            return step % self.steps == 0
        return self.minutes > 0 and since_last >= max(60 * self.minutes, blocked / WRITE_SHARE)


def capture(
    optimizer: Optimizer, counters: Counters, arguments: Mapping[str, Any], parallel: Parallel
) -> dict[str, Any]:
    """What this rank's file of a point holds: copies, which training may go on from."""
    return {
        "format": FORMAT,
        "rank": parallel.rank,
        "world": parallel.world,
        "args": dict(arguments),
        "counters": counters.to_plain(),
        "optimizer": optimizer.state(),
    }


def write_point(
    directory: Path,
    content: Mapping[str, Any],
    *,
    epoch: int,
    clock: Clock,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Write this rank's file of a point and, as rank 0, acknowledge the point and remove those before it.

    Raises KevError if another rank's file does not come within ten minutes; the point before it stays then.
    """
    counters, rank, world = content["counters"], content["rank"], content["world"]
    point = directory / step_name(counters["step"])
    files.write_through(point / rank_name(rank), lambda temporary: torch.save(dict(content), temporary))
    if rank:
        return
    _wait_for_ranks(point, world, clock, pause)
    latest = ResumePoint.model_validate(
        {
            "dir": point.name,
            "step": counters["step"],
            "seen": counters["seen"],
            "tokens_seen": counters["tokens_seen"],
            "peak_mem": counters["peak_mem"],
            "optimizer_seconds": counters["optimizer_seconds"],
            "step_seconds": counters["step_seconds"],
            "elapsed": counters["elapsed"],
            "epoch": epoch,
            "microbatch": 0,
            "grad_norms": counters["grad_norms"],
            "run": {"touched": counters["touched"]},
            "world": world,
            "threads": counters["threads"],
            "attempt": counters["attempt"],
            "args": content["args"],
        }
    )
    write_record(directory / LATEST, latest)
    for older in list_resume_points(directory, world=world).directories:
        if older.step < counters["step"]:
            files.remove_at_once(older.path)


def _wait_for_ranks(point: Path, world: int, clock: Clock, pause: Callable[[float], None]) -> None:
    started = clock.monotonic()
    missing = list(range(1, world))
    while missing := [rank for rank in missing if not (point / rank_name(rank)).exists()]:
        if clock.monotonic() - started > PEER_WAIT_SECONDS:
            raise KevError(f"{point}: {rank_name(missing[0])} did not come within {PEER_WAIT_SECONDS:.0f} s")
        pause(0.02)


@dataclass(frozen=True, slots=True)
class Restored:
    """Where a continuation goes on: after `step`, which is 0 where the very first point was cut off.

    `counters` begin there, and move on with the run.
    """

    point: StepDirectory | None
    step: int
    counters: Counters
    notes: tuple[str, ...]


def notes_of(restored: Restored | None, directory: Path, *, threads: int) -> list[str]:
    """What should not be overlooked of a continuation from `directory` on so many threads."""
    notes = [] if restored is None else list(restored.notes)
    if restored is None or restored.point is None:
        return [*notes, f"{directory}: no resume point was completed, so this attempt starts at step 0"]
    if (before := restored.counters.threads) != threads:
        notes.append(
            f"the attempt before had {before} threads and this one has {threads}: "
            "the weights will not be bit for bit those of an uninterrupted run"
        )
    return notes


def restore(directory: Path, optimizer: Optimizer, arguments: Mapping[str, Any], parallel: Parallel) -> Restored | None:
    """Put the newest point that every rank can read into `optimizer`; None where no point was ever begun.

    Raises Refused if there are points and none can be read, or if they are those of other arguments.
    """
    found = find_continuation(directory, world=parallel.world)
    if found is None:
        return None
    notes = list(found.notes)
    if not found.candidates:
        _discard_beyond(directory, 0, parallel)
        return Restored(None, 0, Counters(), tuple(notes))
    for candidate in found.candidates:
        path = candidate.path / rank_name(parallel.rank)
        content, fault = _read(path, candidate.step)
        # One rank must not go on from an older state than another: all take the point, or none does.
        faulty = parallel.sum(0.0 if fault is None else 1.0)
        if fault is not None or faulty:
            notes.append(fault or f"step {candidate.step} cannot be read by {faulty:.0f} other ranks")
            continue
        _refuse_other_arguments(path, content, arguments, parallel)
        optimizer.load_state(content["optimizer"], path)
        lost = found.lost_before(candidate)
        if lost:
            notes.append(lost)
        _discard_beyond(directory, candidate.step, parallel)
        counters = Counters.from_plain(content["counters"])
        return Restored(candidate, counters.step, counters, tuple(notes))
    raise Refused(f"{directory}: no resume point can be read ({'; '.join(notes)}); start again in a new directory")


def _discard_beyond(directory: Path, step: int, parallel: Parallel) -> None:
    """Remove points past `step`, which are done again: a file of theirs must never complete a new point."""
    parallel.wait()
    if parallel.leads:
        for found in list_resume_points(directory, world=parallel.world).directories:
            if found.step > step:
                files.remove_at_once(found.path)
    parallel.wait()


def _read(path: Path, step: int) -> tuple[dict[str, Any], str | None]:
    try:
        content = _load(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DamagedFile(path, "is no file of a resume point that this trainer writes")
        if (held := _counters_of(path, content).get("step")) != step:
            # A copy under another name, or a rank of another point: its weights are not those of this step.
            raise DamagedFile(path, f"holds step {held!r:.20}, though its directory is that of step {step}")
        _check_state(path, content.get("optimizer"))
    except (DamagedFile, NotFound) as error:
        return {}, str(error)
    return content, None


def _counters_of(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Its counters. Raises DamagedFile, naming the one that holds what no counter of its name can."""
    counters = content.get("counters")
    if not isinstance(counters, dict):
        raise DamagedFile(path, "lacks its counters")
    for name, value in Counters().to_plain().items():
        held = counters.get(name, value)
        if isinstance(value, int | float):
            sound = files.as_finite(held) is not None and (type(held) is int or type(value) is float)
        else:
            sound = type(held) is type(value)
        if not sound:
            raise DamagedFile(path, f"its counter {name} holds {held!r:.40}")
    return counters


def _check_state(path: Path, state: Any) -> None:
    """Raise DamagedFile unless `state` has the shape of what an optimizer gives."""
    if not isinstance(state, dict):
        raise DamagedFile(path, "lacks its optimizer")
    names, values, moments = (state.get(key) for key in ("names", "values", "moments"))
    for key, found in (("names", names), ("values", values), ("moments", moments)):
        if not isinstance(found, list) or len(found) != len(names or []):
            raise DamagedFile(path, f"its optimizer lacks {key}, or has them for other parameters than its names")
    tensors = [*(values or []), *(tensor for each in moments or [] for tensor in (each or {}).values())]
    if not all(isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" for tensor in tensors):
        raise DamagedFile(path, "its optimizer holds what is no tensor")


def _load(path: Path) -> Any:
    if path.stat().st_size <= MAPPED_BYTES:
        return load_weights_only(path)
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # damaged archives raise almost anything
        raise DamagedFile(path, f"cannot be read ({type(error).__name__})") from None


def _refuse_other_arguments(
    path: Path, content: Mapping[str, Any], arguments: Mapping[str, Any], parallel: Parallel
) -> None:
    if content.get("world") != parallel.world or content.get("rank") != parallel.rank:
        raise Refused(f"{path}: is rank {content.get('rank')} of {content.get('world')}, not {parallel.rank} of "
                      f"{parallel.world}")  # fmt: skip
    before = content.get("args")
    before = before if isinstance(before, Mapping) else {}
    changed = [
        f"{key} {before.get(key)!r}, now {arguments.get(key)!r}"
        for key in sorted((before.keys() | arguments.keys()) - FREE_TO_CHANGE)
        if before.get(key) != arguments.get(key)
    ]
    if changed:
        raise Refused(f"{path}: was written with other arguments ({'; '.join(changed)}); continue with the same ones")
