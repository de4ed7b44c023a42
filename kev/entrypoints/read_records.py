"""Launching reads so that none is lost and none is made twice: each has a record of its own, beside its directory."""

from pathlib import Path

from kev import files
from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef
from kev.entrypoints.place import Place
from kev.entrypoints.waiting import failure_of
from kev.errors import Refused
from kev.records.base import read_record, write_record
from kev.records.read import ReadRecord
from kev.worker.orders import Order


async def launch_read(
    place: Place, path: Path, wanted: ReadRecord, function: str, order: Order, *, again_after_failure: bool = False
) -> CallRef:
    """Start the read that `wanted` describes, or find the call of the same read that was started before.

    `again_after_failure` starts it once more where that call failed: for reads whose container knows what was read.
    Raises Refused if the name belongs to another read, or to one whose spawn was interrupted; a RemoteError.
    """
    try:
        files.create_exclusive(path, files.dump_json(wanted.to_json()))
    except FileExistsError:
        found = _adopt(path, wanted, function)
        if not (again_after_failure and await _has_failed(place, found)):
            return found
        write_record(path, wanted)
    try:
        call = await place.compute.spawn(
            function, order.to_json(), run_id=order.run_id, gpu=wanted.gpu, timeout_s=int(wanted.timeout)
        )
    except RemoteError as error:
        if not error.may_have_happened:
            files.remove_file(path)  # nothing was started under the name, so it is free again
        raise
    write_record(path, wanted.model_copy(update={"call": call.id}))
    return call


async def _has_failed(place: Place, call: CallRef) -> bool:
    state = await place.compute.poll(call)
    return state.phase.is_terminal and failure_of(state) is not None


def _adopt(path: Path, wanted: ReadRecord, function: str) -> CallRef:
    found = read_record(path, ReadRecord)
    if not found.is_same_read(wanted):
        raise Refused(f"{wanted.name}: {path.name} is of another read; a name is used once")
    if found.call is None:
        raise Refused(
            f"{wanted.name}: its launch was interrupted and it may be running; pull it if it appears, and otherwise "
            "read under a new name"
        )
    return CallRef(found.call, function, wanted.name)
