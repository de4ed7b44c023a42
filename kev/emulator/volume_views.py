"""Which container sees which volume where: opening, committing and reloading the copies that containers work on."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from kev.emulator.entities import Task
from kev.emulator.store import Store
from kev.emulator.volume_files import Pins, Stage, View, VolumeFiles, remove
from kev.emulator.waiting import Jobs
from kev.emulator.wire import new_id, pb


def variable_of(volume_name: str) -> str:
    """The environment variable in which worker code finds its copy of a volume: `KEV_VOLUME_KEV_RUNS` for kev-runs."""
    return "KEV_VOLUME_" + "".join(each if each.isalnum() else "_" for each in volume_name).upper()


class VolumeViews:
    """The copies that running containers work on, by task and volume."""

    def __init__(self, store: Store, root: Path, stale_s: float) -> None:
        self._store = store
        self._root = root
        self._stale_s = stale_s
        self._volumes: dict[str, VolumeFiles] = {}
        self._views: dict[str, dict[str, View]] = defaultdict(dict)
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._pins = Pins(root / "pins")
        self._late = Jobs()

    def files(self, volume_id: str) -> VolumeFiles:
        if volume_id not in self._volumes:
            files = VolumeFiles(self._root / "volumes" / volume_id)
            files.recover()
            self._volumes[volume_id] = files
        return self._volumes[volume_id]

    def recover(self) -> None:
        """Finish the commits that a kill interrupted, in every volume."""
        for volume_id in self._store.volumes:
            self.files(volume_id)

    def forget(self, volume_id: str) -> None:
        self._volumes.pop(volume_id, None)
        remove(self._root / "volumes" / volume_id)

    async def open(self, task: Task, directory: Path, mounts: list[pb.VolumeMount]) -> dict[str, str]:
        """Make the copies of `mounts` for a container; the variables that lead to them are returned."""
        variables = {}
        for mount in mounts:
            volume = self._store.volume(mount.volume_id)
            view = View(self.files(volume.id), directory / "volumes" / volume.id, mount.read_only, mount.sub_path)
            async with self._locks[volume.id]:
                await asyncio.to_thread(view.reload)
            self._views[task.id][volume.id] = view
            variables[variable_of(volume.name)] = str(view.directory)
        return variables

    async def commit(self, task_id: str, volume_id: str) -> None:
        """Commit what the container changed. It is safe on return, and visible after the plan's delay."""
        # Shielded: a container that dies takes its request with it, but must not leave a thread that still copies.
        await asyncio.shield(self._commit(task_id, volume_id))

    async def reload(self, task_id: str, volume_id: str) -> None:
        """Commit, and then take over what others have committed."""
        await asyncio.shield(self._reload(task_id, volume_id))

    async def change(self, volume_id: str, change: Callable[[], None]) -> None:
        """Change committed files from outside, while no commit or reload is under way, and to the end once begun."""
        await asyncio.shield(self._change(volume_id, change))

    async def close(self, task_id: str) -> None:
        """Forget a container's copies once nothing works on them; what it did not commit is lost, as in reality."""
        for volume_id in self._views.get(task_id, {}):
            async with self._locks[volume_id]:
                pass
        self._views.pop(task_id, None)

    async def stop(self) -> None:
        """Leave commits that are not visible yet to the next start, which finishes them."""
        self._late.cancel()
        await self._late.wait()

    async def _commit(self, task_id: str, volume_id: str) -> None:
        async with self._locks[volume_id]:
            view = self._views.get(task_id, {}).get(volume_id)
            stage = await asyncio.to_thread(view.stage) if view is not None else None
            if view is None or stage is None:
                return
            if not self._stale_s:
                await asyncio.to_thread(self._publish, view, stage)
                return
        self._late.start(self._publish_late(volume_id, view, stage))

    async def _publish_late(self, volume_id: str, view: View, stage: Stage) -> None:
        await asyncio.sleep(self._stale_s)
        async with self._locks[volume_id]:
            await asyncio.to_thread(self._publish, view, stage)

    async def _reload(self, task_id: str, volume_id: str) -> None:
        await self._commit(task_id, volume_id)
        async with self._locks[volume_id]:
            if (view := self._views.get(task_id, {}).get(volume_id)) is not None:
                await asyncio.to_thread(view.reload)

    async def _change(self, volume_id: str, change: Callable[[], None]) -> None:
        async with self._locks[volume_id]:
            await asyncio.to_thread(change)

    @staticmethod
    def _publish(view: View, stage: Stage) -> None:
        view.volume.publish(stage.directory)
        view.published(stage)

    def pin(self, path: Path) -> str:
        """A name under which the present contents of `path` can be read even when the file is replaced."""
        name = new_id("pin")
        self._pins.add(name, path)
        return name

    def pinned(self, volume_id: str, name: str) -> Path:
        """The file behind `name`. Raises KeyError if it is none of ours, or no longer."""
        if volume_id not in self._store.volumes:
            raise KeyError(volume_id)
        return self._pins.path(name)
