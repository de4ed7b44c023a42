"""`kevtui record`: a night in one file that opens on another machine, with nothing secret in it."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kev import files
from kevtui import exit_codes
from kevtui.headless.output import Output
from kevtui.keeping import keep
from kevtui.record.target import SIGNATURE

if TYPE_CHECKING:
    from kevtui.observe.target import Target
    from kevtui.record.manifest import Manifest
    from kevtui.record.redaction import Identity

SUFFIX = ".kevtui.zip"
_LOOK = "free text is kept: look through it before you give it away"


def record(arguments: argparse.Namespace) -> int:
    """Record what `arguments` name; the exit status. Raises KevError, OutputLost and OutputEnded."""
    from kevtui.observe.observer import leases_of
    from kevtui.observe.target import resolve
    from kevtui.record.packing import pack
    from kevtui.replay.command import open_history

    target = resolve(arguments.session, root=arguments.root, cwd=Path.cwd())
    leases = arguments.leases or leases_of(target.root)
    night = open_history(target, leases, only_inside=True).night
    bundle = pack(night, identity_here(target, leases))
    place = arguments.out or Path(f"{target.session or _short(target)}{SUFFIX}")
    changed = keep(place, bundle.data, kind="recorded night", is_of_kind=_is_bundle)
    output = Output(sys.stdout, os.environ)
    if arguments.json:
        output.write(files.dump_json(_report(place, bundle.manifest, bundle.data, changed=changed)).decode())
    else:
        output.write("\n".join(_words(place, bundle.manifest, len(bundle.data), changed=changed)) + "\n")
    return exit_codes.FINE


def identity_here(target: "Target", leases: Path) -> "Identity":
    """Whose machine this is: nothing of it may be in what is recorded."""
    import pwd
    import socket

    from kevtui.record.redaction import Identity

    try:
        account = pwd.getpwuid(os.getuid())
        user, full_name, home = account.pw_name, account.pw_gecos.partition(",")[0], account.pw_dir
    except KeyError:
        user, full_name, home = os.environ.get("USER", ""), "", os.environ.get("HOME", "")
    folders = (target.root, target.root / "runs", leases)
    roots = {str(path) for folder in folders for path in (folder.absolute(), folder.resolve())}
    return Identity(user, full_name, home, (socket.gethostname(),), tuple(sorted(roots)))


def _short(target: "Target") -> str:
    return f"r{target.round}" if target.round is not None else target.root.name or "night"


def _is_bundle(data: bytes) -> bool:
    from kevtui.record.manifest import MANIFEST

    return data.startswith(SIGNATURE) and MANIFEST.encode() in data[:64]


def _words(place: Path, manifest: "Manifest", size: int, *, changed: bool) -> list[str]:
    taken = ", ".join(f"{number} x {kind}" for kind, number in manifest.redacted.items()) or "nothing"
    left = ", ".join(f"{number} x {why}" for why, number in manifest.left_out.items()) or "nothing that was met"
    verb = "wrote" if changed else "unchanged:"
    return [
        f"{verb} {place}: {len(manifest.files)} files, {size:,} bytes",
        f"taken out: {taken}",
        f"left out: {left}; weights and everything the screen does not read",
        f"{_LOOK} (unzip -p {place} | less)",
    ]


def _report(place: Path, manifest: "Manifest", data: bytes, *, changed: bool) -> dict[str, object]:
    from kevtui.record.manifest import hash_of

    return {
        "file": str(place),
        "changed": changed,
        "bytes": len(data),
        "sha256": hash_of(data),
        "files": len(manifest.files),
        "taken_out": manifest.redacted,
        "left_out": manifest.left_out,
    }
