"""Mixing checkpoints: asked for once, admitted like a read, and its record brought home without the weights."""

from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import RUNS_VOLUME, Place
from kev.entrypoints.reads import launch_read, reserve_reads, wait_for_read
from kev.errors import NotFound, Refused
from kev.rounds.blend_orders import BlendRequest, blend_order, check_blend
from kev.rounds.deployed import check_deployed
from kev.rounds.trial_orders import is_same_work
from kev.worker.orders import blend_directory
from kev.worker.sources import source_hashes


async def run_interpolation(place: Place, request: BlendRequest) -> int:
    """Mix one checkpoint for each alpha on the volume, wait for it, and bring home all but the weights.

    What was launched before, by a launcher that died, is waited for and not launched again. Returns the exit code: 1 if
    it failed. Raises Refused and its like before anything is launched; a RemoteError.
    """
    alphas = check_blend(request)
    gate = open_gate(place)
    unit_id, order = blend_order(request, alphas, provenance_of(place, gate))
    known = gate.ledger.read().by_id.get(unit_id)
    if known is None or not known.counted:
        await _check_targets_are_free(place, request, alphas)
        await check_deployed(gate, place.app_name, source_hashes(place.root))
    await reserve_reads(gate, unit_id, [(unit_id, order)], is_same_work)
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


async def _check_targets_are_free(place: Place, request: BlendRequest, alphas: list[str]) -> None:
    """Raises Refused for a target that is there: a container would find out for money."""
    for alpha in alphas:
        name = blend_directory(request.study, request.prefix, alpha)
        if (place.runs / name).exists() or await place.compute.listdir(RUNS_VOLUME, name):
            raise Refused(f"/runs/{name}: is there already; use another --prefix")
