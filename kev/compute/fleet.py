"""Containers that run now. The API has no list of them; the command line does, and prints JSON."""

from typing import Any

from kev.compute.calls import moment_of
from kev.compute.client import ModalClient
from kev.compute.protocol import Container
from kev.text import visible


async def containers(client: ModalClient) -> list[Container]:
    """Every container of the environment, whatever its app."""
    rows = await client.command("container", "list")
    return [container_of(row) for row in rows if isinstance(row, dict)]


def container_of(row: dict[str, Any]) -> Container:
    """One row of `modal container list --json`, under the keys of this version or of older ones ("Container ID")."""
    known = {key.strip().lower().replace(" ", "_"): value for key, value in row.items()}
    return Container(
        id=visible(str(known.get("container_id") or "")),
        app_id=visible(str(known.get("app_id") or "")),
        app_name=visible(str(known.get("app_name") or "")),
        started_at=moment_of(known.get("start_time")),
    )
