"""provenance.json: what a trial's figures depend on, and whether it may be continued or scored again."""

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, Refused
from kev.evaluators import is_evaluator_file, source_hashes
from kev.suite import Suite

PROVENANCE = "provenance.json"
NAMED = 3
"""Changed files that a message names."""


def config_sha256(config: Mapping[str, Any]) -> str:
    """The record digest of a configuration: of its compact JSON, keys in their own order."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(config, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def begin(
    directory: Path, config: Mapping[str, Any], suite: Suite, root: Path, *, device: str, legacy: bool = False
) -> dict[str, Any]:
    """Write the provenance of a trial that begins, and return it."""
    found = {
        "config": dict(config),
        "config_sha256": config_sha256(config),
        "suite_sha256": suite.sha256,
        "source_hashes": source_hashes(root),
        "git_commit": git_commit(root),
        "platform": platform.platform(),
        "torch": torch_version(),
        "device": device,
        "gpu": None,
        "legacy_checkpoint": legacy,
    }
    files.write_atomic(directory / PROVENANCE, files.dump_json(found))
    return found


def read(directory: Path) -> dict[str, Any]:
    """The provenance of a trial that was begun. Raises NotFound or DamagedFile."""
    path = directory / PROVENANCE
    found = files.read_json(path)
    if not isinstance(found, dict) or not isinstance(found.get("config"), dict):
        raise DamagedFile(path, "is no provenance of a trial")
    return found


def continued(directory: Path, found: dict[str, Any], suite: Suite, root: Path, *, training: bool) -> dict[str, Any]:
    """Note another attempt in the provenance, and return it.

    Training goes on only with every source as it was, and scoring only with the suite and the evaluator files as they
    were. Raises Refused.
    """
    if found.get("suite_sha256") != suite.sha256:
        raise Refused(f"{directory}: was begun on another suite than {suite.directory}")
    before, now = found.get("source_hashes") or {}, source_hashes(root)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    evaluators = [name for name in changed if is_evaluator_file(name)]
    if training and changed:
        raise Refused(f"{directory}: cannot go on training with other sources than it began with: {_some(changed)}")
    if evaluators:
        raise Refused(f"{directory}: cannot be scored by other evaluator files than it began with: {_some(evaluators)}")
    entry = {"git_commit": git_commit(root), "device": found.get("device")}
    found = {**found, "continued": [*(found.get("continued") or []), entry]}
    if changed:
        found["resumed_with_changed_non_evaluator_files"] = changed
    files.write_atomic(directory / PROVENANCE, files.dump_json(found))
    return found


def git_commit(root: Path) -> str | None:
    """The commit of the checkout, or what KEV_GIT_COMMIT says where there is no repository; None if nobody tells."""
    told = os.environ.get("KEV_GIT_COMMIT")
    if told:
        return told
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def torch_version() -> str | None:
    """The installed version, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
