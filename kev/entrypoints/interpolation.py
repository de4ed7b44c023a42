"""Mixing checkpoints: asked for once, admitted like a read, and its record brought home without the weights."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from kev.budget import INTERPOLATION, cpu_bound
from kev.entrypoints.admission import STUDY_NAME
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.reads import launch_read, wait_for_read
from kev.errors import NotFound, Refused, UsageError
from kev.ledger.units import blend_id
from kev.records.ledger import Order
from kev.rounds.deployed import check_deployed
from kev.rounds.trial_orders import Provenance, Wanted, is_same_work, round_up
from kev.worker.orders import BLEND_FUNCTION, blend_directory
from kev.worker.sources import source_hashes

PINNED = re.compile(r"[\w.-]+/[\w.-]+@[\w.-]+")


@dataclass(frozen=True, slots=True)
class BlendRequest:
    """What the command line asks for. `alphas` are shares of `sft`, separated by commas."""

    sft: str
    prefix: str
    alphas: str
    base: str
    revision: str
    study: str
    timeout: int
    toward: str = ""
    blend_head: bool = False


async def run_interpolation(place: Place, request: BlendRequest) -> int:
    """Mix one checkpoint for each alpha on the volume, wait for it, and bring home all but the weights.

    What was launched before, by a launcher that died, is waited for and not launched again. Returns the exit code: 1 if
    it failed. Raises Refused and its like before anything is launched; a RemoteError.
    """
    alphas = check_blend(request)
    gate = open_gate(place)
    unit_id, order = blend_order(request, alphas, provenance_of(place, gate))
    known = gate.ledger.read().by_id.get(unit_id)
    if known is not None and known.counted:
        if not is_same_work(known.order, order):
            raise Refused(f"{unit_id}: the ledger has another of that name; a name is used once")
    else:
        await _check_targets_are_free(place, request, alphas)
        await check_deployed(gate, place.app_name, source_hashes(place.root))
    await gate.reserve(unit_id, [(unit_id, order)])
    call = await launch_read(gate, unit_id)
    place.say(f"{request.study}/{request.prefix}: {call.id}")
    why = await wait_for_read(place, gate, unit_id, call)
    for alpha in alphas:
        name = blend_directory(request.study, request.prefix, alpha)
        try:
            await place.compute.pull(RUNS_VOLUME, f"/{name}", place.runs / name)
        except NotFound:
            why = why or f"left nothing at /runs/{name}"
        else:
            place.say(f"{name}: /runs/{name}/checkpoint")
    if why is not None:
        place.say(f"{request.study}/{request.prefix}: FAILED {why}")
    return 0 if why is None else 1


def check_blend(request: BlendRequest) -> list[str]:
    """The alphas of a request. Raises UsageError for what cannot be meant."""
    if not request.sft.startswith("/runs/"):
        raise UsageError(f"--sft {request.sft!r:.100}: write a checkpoint under /runs/")
    if request.toward and not (request.toward.startswith("/runs/") or PINNED.fullmatch(request.toward)):
        raise UsageError(
            f"--toward {request.toward!r:.100}: write a checkpoint under /runs/, or owner/name@revision of the Hub"
        )
    if request.blend_head and not request.toward:
        raise UsageError("--blend-head needs --toward: a base has no head")
    for flag, value in (("--study", request.study), ("--prefix", request.prefix)):
        if not STUDY_NAME.fullmatch(value):
            raise UsageError(f"{flag} {value!r:.100}: a name is 1 to 80 letters, digits, _ or -")
    if request.timeout < 1:
        raise UsageError(f"--timeout {request.timeout}: write a number of seconds")
    alphas = [part.strip() for part in request.alphas.split(",")]
    if len({_percent(alpha) for alpha in alphas}) < len(alphas):
        raise UsageError(f"--alphas {request.alphas!r:.100}: names a share twice")
    return alphas


def _percent(alpha: str) -> int:
    try:
        percent = Decimal(alpha) * 100
    except InvalidOperation:
        percent = Decimal(0)
    if not (percent.is_finite() and 1 <= percent <= 99 and percent == int(percent)):
        raise UsageError(f"--alphas {alpha!r:.40}: write shares from 0.01 to 0.99 in whole hundredths")
    return int(percent)


def blend_order(request: BlendRequest, alphas: list[str], provenance: Provenance) -> Wanted:
    """The request as a unit of the ledger."""
    order = Order(
        kind="blend",
        name=f"{request.study}/{request.prefix}",
        function=BLEND_FUNCTION,
        payload={"sources": provenance.sources, "git_commit": provenance.commit, "sft": request.sft,
                 "toward": request.toward, "base": request.base, "revision": request.revision, "alphas": alphas,
                 "prefix": request.prefix, "study": request.study, "blend_head": request.blend_head},
        timeout=request.timeout,
        attempt_usd=round_up(cpu_bound(INTERPOLATION, request.timeout)),
        remote=request.study,
        local=f"runs/{request.study}",
        session=provenance.session,
    )  # fmt: skip
    return blend_id(request.study, request.prefix), order


async def _check_targets_are_free(place: Place, request: BlendRequest, alphas: list[str]) -> None:
    """Raises Refused for a target that is there: a container would find out for money."""
    for alpha in alphas:
        name = blend_directory(request.study, request.prefix, alpha)
        if (place.runs / name).exists() or await place.compute.listdir(RUNS_VOLUME, name):
            raise Refused(f"/runs/{name}: is there already; use another --prefix")
