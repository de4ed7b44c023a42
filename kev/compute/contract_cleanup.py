"""What the contract run creates, looked for before and removed after."""

from collections.abc import Awaitable, Callable
from typing import Any

from kev.compute import classify
from kev.compute.client import ModalClient, ModalSettings, load_modal
from kev.compute.contract import APP, DICT, VOLUME
from kev.compute.errors import RemoteError
from kev.compute.modal_compute import ModalCompute
from kev.errors import KevError, Refused


async def check_absent(compute: ModalCompute, settings: ModalSettings) -> None:
    """Raises Refused if the app, the volume or the Dict of the contract exists: it may be somebody's."""
    if await compute.app() is not None:
        raise Refused(f"app {APP} is deployed already; stop it first: modal app stop {APP}")
    client = ModalClient(settings)
    modal = load_modal()
    try:
        for kind, named, name in (("volume", modal.Volume, VOLUME), ("dict", modal.Dict, DICT)):
            handle = named.from_name(name, environment_name=settings.environment, client=await client.open())
            if await _exists(client, handle, f"look for the {kind} {name}"):
                raise Refused(f"{kind} {name} exists already; delete it first: modal {kind} delete {name}")
    finally:
        await client.close()


async def _exists(client: ModalClient, handle: Any, doing: str) -> bool:
    try:
        await client.bounded(handle.hydrate.aio(), doing)
    except RemoteError:
        raise
    except Exception as error:
        if classify.is_missing(error):
            return False
        raise classify.error_of(error, doing) from error
    return True


async def remove(compute: ModalCompute, settings: ModalSettings) -> None:
    """Stop the app and delete the volume and the Dict. What is not there is fine.

    Raises KevError naming what could not be removed, after everything else was.
    """
    client = ModalClient(settings)
    modal = load_modal()
    gone = {"allow_missing": True, "environment_name": settings.environment, "client": await client.open()}
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        f"modal app stop {APP}": lambda: _stop(compute, client),
        f"modal volume delete {VOLUME}": lambda: modal.Volume.objects.delete.aio(VOLUME, **gone),
        f"modal dict delete {DICT}": lambda: modal.Dict.objects.delete.aio(DICT, **gone),
    }
    left = []
    for command, step in steps.items():
        try:
            await client.ask(step(), command, deadline_s=client.deadlines.command)
        except KevError as error:
            left.append(f"{command} ({error})")
    await client.close()
    if left:
        raise KevError(f"left behind, remove it yourself: {'; '.join(left)}")


async def _stop(compute: ModalCompute, client: ModalClient) -> None:
    if await compute.app() is not None:
        # By the command line: the first versions of 1.6 have no method for it.
        await client.run_command("app", "stop", APP, "--yes")
