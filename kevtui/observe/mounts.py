"""What kind of file system a folder lies on: some tell nothing of what another machine changes there.

Read from the kernel's table, so that asking touches the volume itself no more than any look at it does.
"""

import os
import re
from pathlib import Path
from typing import Final

TABLE: Final = Path("/proc/self/mounts")

SHARED: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "beegfs", "gpfs", "virtiofs", "vboxsf",
     "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.juicefs",
     "fuse.vmhgfs-fuse")
)  # fmt: skip
"""Kinds on which another machine's changes send no events."""

LOCKLESS: Final = frozenset(("fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"))
"""Kinds that take every lock and tell the other machine of none: two programs hold the same one. They also say that
everything may be written, and refuse when it is."""

_MOST_LINKS = 40
_ESCAPE = re.compile(r"\\([0-7]{3})")


def read_table() -> str:
    """The text of the kernel's table of mounts, or "" where there is none."""
    try:
        return TABLE.read_text(errors="surrogateescape")
    except OSError:
        return ""


def kind_of(path: Path, table: str) -> str:
    """The kind of file system that `path` lies on, or "" where it is not known."""
    real = os.path.realpath(path)
    around = [point for point in _points(table) if real == point or real.startswith(point.rstrip("/") + "/")]
    return _points(table)[max(around, key=len)] if around else ""


def _points(table: str) -> dict[str, str]:
    """Mount point to kind; of two mounts on one point the later one is seen."""
    lines = [fields for line in table.splitlines() if len(fields := line.split(" ")) >= 3]
    return {_ESCAPE.sub(lambda escape: chr(int(escape.group(1), 8)), fields[1]): fields[2] for fields in lines}


def shared_on_the_way(path: Path, table: str) -> str:
    """The kind of the first shared volume that the way to `path` enters, or "".

    Nothing is asked of that volume, which may hang: links are followed up to its edge only.
    """
    shared = {point: kind for point, kind in _points(table).items() if kind in SHARED}
    if not shared:
        return ""
    ahead = [part for part in reversed(os.path.abspath(path).split("/")) if part]  # noqa: PTH100  no link is followed
    here, links = "/", 0
    while ahead:
        here = os.path.normpath(os.path.join(here, ahead.pop()))  # noqa: PTH118
        if here in shared:
            return shared[here]
        try:
            link = os.readlink(here)  # noqa: PTH115  many parts, each as text
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return ""
        ahead += [part for part in reversed(link.split("/")) if part]
        here = "/" if link.startswith("/") else os.path.dirname(here)  # noqa: PTH120
    return ""


def shared_kind(path: Path) -> str:
    """The kind of file system of `path` if it is one that other machines change unseen, else ""."""
    kind = kind_of(path, read_table())
    return kind if kind in SHARED else ""
