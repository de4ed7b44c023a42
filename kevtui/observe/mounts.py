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
    best, kind = "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _ESCAPE.sub(lambda escape: chr(int(escape.group(1), 8)), fields[1])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # Of two mounts on one point the later one is seen.
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def shared_kind(path: Path) -> str:
    """The kind of file system of `path` if it is one that other machines change unseen, else ""."""
    kind = kind_of(path, read_table())
    return kind if kind in SHARED else ""
