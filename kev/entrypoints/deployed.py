"""What runs remotely must be what is here: the deployed app is asked for its sources before anything is launched."""

from kev.compute.errors import NotDeployed
from kev.compute.protocol import Phase
from kev.entrypoints.place import Place
from kev.errors import Refused
from kev.worker.orders import HASHES_FUNCTION
from kev.worker.sources import describe, differing, digest, source_hashes

WAIT_S = 120


async def check_deployed_sources(place: Place) -> str:
    """The digest of the sources, which are the same here and on the deployed app.

    Raises Refused if there is no such app, if its sources differ, or if it does not say. Raises a RemoteError if
    nobody can be asked.
    """
    ours = source_hashes(place.root)
    deploy = f"KEV_APP_NAME={place.app_name} modal deploy modal_app.py"
    try:
        call = await place.compute.spawn(HASHES_FUNCTION, {}, run_id="sources", timeout_s=WAIT_S)
        state = await place.compute.poll(call, wait_s=WAIT_S)
    except NotDeployed:
        raise Refused(f"app {place.app_name} is not deployed; run: {deploy}") from None
    if state.phase is not Phase.SUCCEEDED or not isinstance(state.result, dict):
        raise Refused(f"app {place.app_name} does not tell its sources ({state.phase}: {state.error}); run: {deploy}")
    changed = differing(ours, state.result)
    if changed:
        raise Refused(f"app {place.app_name} was deployed from other sources: {describe(changed)}; run: {deploy}")
    return digest(ours)
