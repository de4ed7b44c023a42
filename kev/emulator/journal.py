"""The append-only journal: what the emulator has acknowledged, in the order in which it happened.

One JSON line per change: `{"kind": ..., "id": ..., "value": {...}}`, or `"value": null` for a removal. The last line
of an id is what holds. A reply leaves the emulator only after `sync`, so whatever a client was told survives a kill.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from kev import files
from kev.emulator.entities import KINDS, Entity
from kev.errors import DamagedLine

MAX_BYTES = 2 * 1024 * 1024 * 1024


class Journal:
    """Collects changes and writes all that wait in one append, so that many replies share one flush to the device."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None

    def record(self, entity: Entity) -> None:
        head = orjson.dumps({"kind": entity.kind, "id": entity.id})
        self._pending.append(head[:-1] + b',"value":' + entity.model_dump_json().encode() + b"}\n")

    def record_removal(self, entity: Entity) -> None:
        self._pending.append(orjson.dumps({"kind": entity.kind, "id": entity.id, "value": None}) + b"\n")

    async def sync(self) -> None:
        """Return once everything recorded so far is on the device. Raises OSError if the device refuses it."""
        while self._pending or self._writing is not None:
            if self._writing is None:
                self._writing = asyncio.create_task(self._write())
            await asyncio.shield(self._writing)

    async def _write(self) -> None:
        lines, self._pending = self._pending, []
        try:
            await asyncio.to_thread(files.append, self.path, b"".join(lines))
        except BaseException:
            self._pending = lines + self._pending
            raise
        finally:
            self._writing = None

    def read(self) -> Iterator[Entity]:
        """What holds, in the order of first appearance.

        A torn last line was never acknowledged and is left out. Raises DamagedLine for any other that cannot be read.
        """
        if not self.path.exists():
            return
        lines = list(files.parse_json_lines(files.read_bytes(self.path, limit=MAX_BYTES)))
        if lines and lines[-1].damage is not None:
            lines.pop()
        latest: dict[tuple[str, str], tuple[int, Any]] = {}
        for line in lines:
            if line.damage is not None:
                raise DamagedLine(self.path, line.number, line.damage)
            latest[line.value["kind"], line.value["id"]] = line.number, line.value["value"]
        for (kind, _), (number, value) in latest.items():
            if value is not None:
                try:
                    yield KINDS[kind].model_validate_json(orjson.dumps(value))
                except (KeyError, ValidationError) as error:
                    raise DamagedLine(self.path, number, f"no {kind} of this version ({error})") from None

    def compact(self, entities: list[Entity]) -> None:
        """Replace the journal by one line for each of `entities`. Only while nothing else is written."""
        for entity in entities:
            self.record(entity)
        lines, self._pending = self._pending, []
        files.write_atomic(self.path, b"".join(lines))
