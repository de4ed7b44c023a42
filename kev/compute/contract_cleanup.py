"""What the contract run creates, looked for before and removed after."""

from typing import Any

from kev.compute import classify
from kev.compute.client import ModalClient, ModalSettings, load_modal
from kev.compute.contract import APP, DICT, VOLUME
from kev.compute.errors import RemoteError
from kev.compute.modal_compute import ModalCompute
from kev.errors import Refused


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
    """Stop the app and delete the volume and the Dict. What is not there is fine."""
    client = ModalClient(settings)
    modal = load_modal()
    connected = await client.open()
    where = {"environment_name": settings.environment, "client": connected}
    try:
        if await compute.app() is not None:
            app = await client.ask(modal.App.lookup.aio(APP, **where), f"look up {APP}")
            await client.ask(app.stop.aio(), f"stop {APP}")
        gone = {"allow_missing": True, **where}
        await client.ask(modal.Volume.objects.delete.aio(VOLUME, **gone), f"delete the volume {VOLUME}")
        await client.ask(modal.Dict.objects.delete.aio(DICT, **gone), f"delete the Dict {DICT}")
    finally:
        await client.close()
