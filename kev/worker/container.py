"""What a container gives to the work in it: its volumes, its threads, its sources and the id of its call."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kev.clock import Clock, SystemClock
from kev.errors import UsageError

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Volume(Protocol):
    """A volume as its container sees it: a directory that others see once it is committed."""

    @property
    def path(self) -> Path: ...

    def commit(self) -> None:
        """Make what was written here visible to everyone. May raise what the provider raises."""
        ...

    def reload(self) -> None:
        """Take over what others have committed. No file on the volume may be open."""
        ...


def variable_of(volume_name: str) -> str:
    """The environment variable that says where a volume is when it is not at its mount point: in the emulator,
    whose volumes are plain directories."""
    return "KEV_VOLUME_" + "".join(each if each.isalnum() else "_" for each in volume_name).upper()


@dataclass(frozen=True, slots=True)
class MountedVolume:
    """A volume of Modal in a container of it."""

    name: str
    mount: str
    handle: Any
    """The `modal.Volume`."""

    @property
    def path(self) -> Path:
        return Path(os.environ.get(variable_of(self.name)) or self.mount)

    def commit(self) -> None:
        self.handle.commit()

    def reload(self) -> None:
        self.handle.reload()


@dataclass(frozen=True, slots=True)
class Container:
    """Where work runs. `root` holds the sources and evals/, as they were deployed."""

    runs: Volume
    leases: Volume
    root: Path
    call_id: str | None = None
    hub: Volume | None = None
    """Holds what is fetched from the Hub, and bases that people put there."""
    clock: Clock = field(default_factory=SystemClock)

    def place(self, remote: str) -> Path:
        """The file or directory on the runs volume that the launcher calls `remote`, with or without its mount.

        Raises UsageError if the name leaves the volume.
        """
        name = remote.removeprefix("/runs/").strip("/")
        if not name or ".." in Path(name).parts:
            raise UsageError(f"{remote!r:.120} is no path on the runs volume")
        return self.runs.path / name

    def shown(self, path: Path) -> str:
        """What people and records call a place on the runs volume, wherever that is mounted."""
        return f"/runs/{path.relative_to(self.runs.path).as_posix()}"


def use_hub_cache(volume: Volume) -> None:
    """Let the Hub's client, which is imported later, keep what it fetches on `volume`."""
    os.environ["HF_HOME"] = str(volume.path)


def limit_threads(cores: int) -> int:
    """Let numeric libraries that are imported later use the cores this container was given; the number is returned.

    A library left to itself starts a thread for every core of the host, and a container has a few of them. What the
    environment already says is kept.
    """
    threads = max(1, min(cores, os.cpu_count() or 1))
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, str(threads))
    return threads
