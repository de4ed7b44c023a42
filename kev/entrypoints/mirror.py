"""Mirroring checkpoints: what there is and how large comes first; large ones need their owner's word."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from kev.budget import MIRROR, cpu_bound
from kev.compute.protocol import Entry, EntryKind
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.reads import launch_read, wait_for_read
from kev.errors import NotFound, Refused, UsageError
from kev.publish import REPOSITORY
from kev.records.ledger import Order
from kev.rounds.deployed import check_deployed
from kev.rounds.trial_orders import Provenance, Wanted, round_up
from kev.worker.mirrors import COMPLETE
from kev.worker.orders import MIRROR_FUNCTION
from kev.worker.sources import source_hashes

TIMEOUT_S = 14_400
LARGE = 20 * 10**9
"""Bytes above which a checkpoint's owner is asked: 10 billion weights in bf16."""


@dataclass(frozen=True, slots=True)
class MirrorRequest:
    """What the command line asks for: a study's checkpoints, or some by their paths, separated by commas."""

    study: str
    paths: str
    repo: str
    force: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on the runs volume. `bytes` are what would be copied."""

    path: str
    bytes: int
    complete: bool


async def run_mirror(place: Place, request: MirrorRequest) -> int:
    """Show the checkpoints and their sizes and, unless it is a dry run, copy them. Returns the exit code.

    Raises UsageError without a target, NotFound or Refused for what is not there, not complete, or large without
    `force`; a RemoteError.
    """
    if not request.study and not request.paths:
        raise UsageError("mirror_snapshots: name a --study or --paths")
    if not (REPOSITORY.fullmatch(request.repo) or request.repo.startswith("/hf/")):
        raise UsageError(f"--repo {request.repo!r:.100}: write owner/name, or a directory under /hf/")
    found = await _find(place, request)
    chosen = [each for each in found if each.complete]
    for each in found:
        place.say(f"{each.bytes / 1e9:8.3f} GB  {each.path}{'' if each.complete else '  (not complete, left out)'}")
    place.say(f"{sum(each.bytes for each in chosen) / 1e9:8.3f} GB  {len(chosen)} checkpoints -> {request.repo}")
    if request.dry_run:
        place.say("nothing was copied (--dry-run)")
        return 0
    large = [each for each in chosen if each.bytes > LARGE]
    if large and not request.force:
        raise Refused(f"{large[0].path}: {large[0].bytes / 1e9:.0f} GB; above {LARGE / 1e9:.0f} GB its owner is asked "
                      "first, and then --force says so")  # fmt: skip
    if not chosen:
        raise Refused("mirror_snapshots: no checkpoint there is complete")
    return await _copy(place, request, [each.path for each in chosen])


async def _find(place: Place, request: MirrorRequest) -> list[Checkpoint]:
    found: list[Checkpoint] = []
    if request.study:
        entries = await place.compute.listdir(RUNS_VOLUME, request.study, recursive=True)
        found += checkpoints_in(entries)
        if not found:
            raise NotFound(f"study {request.study}: has no checkpoint on the volume {RUNS_VOLUME}")
    for path in filter(None, (part.strip() for part in request.paths.split(","))):
        name = path.removeprefix("/runs/").strip("/")
        if not path.startswith("/runs/") or not name.endswith("/checkpoint"):
            raise UsageError(f"--paths {path!r:.100}: write checkpoints under /runs/, .../checkpoint")
        entries = await place.compute.listdir(RUNS_VOLUME, name.removesuffix("/checkpoint"), recursive=True)
        match = next((each for each in checkpoints_in(entries) if each.path == f"/runs/{name}"), None)
        if match is None:
            raise NotFound(f"{path}: no checkpoint there")
        if not match.complete:
            raise Refused(f"{path}: is not complete, so it is not mirrored")
        found.append(match)
    return list(dict.fromkeys(found))


def checkpoints_in(entries: Iterable[Entry]) -> list[Checkpoint]:
    """The checkpoints among the files of a listing, in order of path."""
    sizes = {entry.path: entry.size for entry in entries if entry.kind is EntryKind.FILE}
    homes = {path.rpartition("/checkpoint/")[0] for path in sizes if "/checkpoint/" in path}
    found = []
    for home in sorted(homes):
        inside = f"{home}/checkpoint/"
        copied = {path: size for path, size in sizes.items() if path.startswith(inside)
                  and "/resume/" not in path}  # fmt: skip
        complete = f"{inside}head.pt" in sizes and any(f"{home}/{name}" in sizes for name in COMPLETE)
        found.append(Checkpoint(f"/runs/{home}/checkpoint", sum(copied.values()), complete))
    return found


async def _copy(place: Place, request: MirrorRequest, checkpoints: list[str]) -> int:
    gate = open_gate(place)
    unit_id, order = mirror_order(request, checkpoints, provenance_of(place, gate))
    await check_deployed(gate, place.app_name, source_hashes(place.root))
    await gate.reserve(unit_id, [(unit_id, order)])
    call = await launch_read(gate, unit_id)
    why = await wait_for_read(place, gate, unit_id, call)
    place.say(f"{request.repo}: {'mirrored' if why is None else f'FAILED {why}'}")
    return 0 if why is None else 1


def mirror_order(request: MirrorRequest, checkpoints: list[str], provenance: Provenance) -> Wanted:
    """The request as a unit of the ledger; the same checkpoints to the same place are one unit."""
    wanted = "\n".join([request.repo, str(request.force), *checkpoints])
    unit_id = f"mirror/{request.repo.strip('/')}/{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    return unit_id, Order(
        kind="mirror",
        name=unit_id,
        function=MIRROR_FUNCTION,
        payload={"sources": provenance.sources, "git_commit": provenance.commit, "checkpoints": checkpoints,
                 "repo": request.repo, "force": request.force},
        timeout=TIMEOUT_S,
        attempt_usd=round_up(cpu_bound(MIRROR, TIMEOUT_S)),
        remote="",
        local="",
        session=provenance.session,
    )  # fmt: skip
