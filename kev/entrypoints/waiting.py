"""Waiting for calls to end, through every outage of the network."""

from kev.compute.errors import Throttled, Unavailable
from kev.compute.protocol import CallRef, CallState, Phase
from kev.entrypoints.place import Place

POLL_WAIT_S = 15.0
PAUSE_S = 5.0


async def wait_for_end(place: Place, ref: CallRef) -> CallState:
    """The last state of a call. Who cannot be reached is asked again: silence says nothing about the work."""
    silent = False
    while True:
        try:
            state = await place.compute.poll(ref, wait_s=POLL_WAIT_S)
        except (Unavailable, Throttled) as error:
            if not silent:
                place.say(f"{ref.run_id or ref.id}: cannot be asked, still trying ({error})")
            silent = True
            await place.pause((error.retry_after_s if isinstance(error, Throttled) else None) or PAUSE_S)
            continue
        silent = False
        if state.phase.is_terminal:
            return state


def failure_of(state: CallState) -> str | None:
    """Why a call that ended is no success, in words; None if it is one."""
    if state.phase is not Phase.SUCCEEDED:
        return f"{state.phase}{': ' + state.error if state.error else ''}"
    if isinstance(state.result, dict):
        if "failed" in state.result:
            return f"failed: {_words(state.result['failed'])}"
        if "refused" in state.result:
            return f"refused: {state.result['refused']}"
    return None


def _words(failed: object) -> str:
    if isinstance(failed, dict):
        return f"{failed.get('type')}: {failed.get('message')}"
    return str(failed)
