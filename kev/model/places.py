"""Where a base or a checkpoint lies on this machine: a directory, or the Hub's cache."""

import re
from pathlib import Path

from kev.errors import NotFound

HUB_ID = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?")
PATTERNS = ["*.json", "*.safetensors", "*.pt", "*.txt", "*.jinja"]


def locate(run: str, revision: str | None = None) -> Path:
    """The directory of `run`: a local one, or that of a Hub id `owner/name[@revision]` already in the Hub's cache.

    Nothing is fetched. Raises NotFound, with the command that fetches it.
    """
    directory = Path(run).expanduser() if run.startswith("~/") else Path(run)
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
