"""provenance.json: what a trial's figures depend on, and whether it may be continued or scored again."""

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, Refused
from kev.evaluators import describe, differing, is_evaluator_file, source_hashes
from kev.git import commit_of
from kev.suite import Suite

PROVENANCE = "provenance.json"


def config_sha256(config: Mapping[str, Any]) -> str:
    """The record digest of a configuration: of its compact JSON, keys in their own order."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(config, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def begin(
    directory: Path, config: Mapping[str, Any], suite: Suite, root: Path, *, device: str, legacy: bool = False
) -> dict[str, Any]:
    """Write the provenance of a trial that begins, and return it."""
    found = of_beginning(
        config, suite, source_hashes(root), commit=commit_of(root), device=device, gpu=None, legacy=legacy
    )
    files.write_atomic(directory / PROVENANCE, files.dump_json(found))
    return found


def of_beginning(
    config: Mapping[str, Any], suite: Suite, hashes: Mapping[str, str], *, commit: str | None, device: str,
    gpu: str | None, legacy: bool,
) -> dict[str, Any]:  # fmt: skip
    """What is known of a trial before its first step."""
    return {
        "config": dict(config),
        "config_sha256": config_sha256(config),
        "suite_sha256": suite.sha256,
        "source_hashes": dict(hashes),
        "git_commit": commit,
        "platform": platform.platform(),
        "torch": torch_version(),
        "device": device,
        "gpu": gpu,
        "legacy_checkpoint": legacy,
    }


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
    changed = differing(found.get("source_hashes") or {}, source_hashes(root))
    evaluators = [name for name in changed if is_evaluator_file(name)]
    if training and changed:
        raise Refused(f"{directory}: cannot go on training with other sources than it began with: {describe(changed)}")
    if evaluators:
        raise Refused(
            f"{directory}: cannot be scored by other evaluator files than it began with: {describe(evaluators)}"
        )
    entry = {"git_commit": commit_of(root), "device": found.get("device")}
    found = {**found, "continued": [*(found.get("continued") or []), entry]}
    if changed:
        found["resumed_with_changed_non_evaluator_files"] = changed
    files.write_atomic(directory / PROVENANCE, files.dump_json(found))
    return found


def torch_version() -> str | None:
    """The installed version, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
