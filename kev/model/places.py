"""Where a base or a checkpoint lies on this machine: a directory, or the Hub's cache."""

import os
import re
from pathlib import Path

from kev.errors import NotFound

HUB_ID = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?")
PATTERNS = ["*.json", "*.safetensors", "*.pt", "*.txt", "*.jinja"]


MOUNTS = {"/runs/": "KEV_VOLUME_KEV_RUNS", "/hf/": "KEV_VOLUME_KEV_HF_CACHE"}
"""Mount points of volumes in a container, and the variable that says where such a volume is when it is not there: the
emulator's are plain directories."""


def mounted(path: str) -> Path:
    """The path on this machine of what a container knows as `path`."""
    for mount, variable in MOUNTS.items():
        if path.startswith(mount) and (place := os.environ.get(variable)):
            return Path(place, path.removeprefix(mount))
    return Path(path).expanduser() if path.startswith("~/") else Path(path)


def locate(run: str, revision: str | None = None) -> Path:
    """The directory of `run`: a local one, or that of a Hub id `owner/name[@revision]` already in the Hub's cache.

    Nothing is fetched. Raises NotFound, with the command that fetches it.
    """
    directory = mounted(run)
    if directory.is_dir():
        return directory
    match = HUB_ID.fullmatch(run)
    if match is None:
        raise NotFound(f"{run}: no such directory, and not a Hub id of the form owner/name[@revision]")
    revision = match["revision"] or revision
    import huggingface_hub

    try:
        found = huggingface_hub.snapshot_download(
            match["name"], revision=revision, allow_patterns=PATTERNS, local_files_only=True
        )
    except (OSError, ValueError):  # the client raises both for what its cache lacks
        pinned = f" --revision {revision}" if revision else ""
        raise NotFound(
            f"{run}: neither a directory nor in the Hub's cache; fetch it with `hf download {match['name']}{pinned}`"
        ) from None
    return Path(found)
