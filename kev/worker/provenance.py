"""provenance.json of a trial: the configuration and the hashes that its numbers depend on."""

from pathlib import Path
from typing import Any

from kev import files
from kev.errors import DamagedFile, Refused
from kev.evaluators import describe, differing
from kev.suite import Suite
from kev.trial.provenance import config_sha256, of_beginning
from kev.worker.orders import TrialOrder


def new_provenance(
    order: TrialOrder, suite: Suite, hashes: dict[str, str], *, device: str, synthetic: bool
) -> dict[str, Any]:
    """What is written before the first step."""
    provenance = of_beginning(
        order.config, suite, hashes, commit=order.git_commit, device=device, gpu=order.gpu,
        legacy=order.existing is not None,
    )  # fmt: skip
    return provenance | {"nonces": [order.nonce]} | ({"synthetic": True} if synthetic else {})


def continued_provenance(path: Path, order: TrialOrder, hashes: dict[str, str]) -> dict[str, Any]:
    """The provenance in `path` with this attempt added. Raises NotFound, DamagedFile, or Refused for other sources.

    An attempt that the platform restarted is the same attempt, and is not added twice.
    """
    provenance = files.read_json(path)
    if not isinstance(provenance, dict) or not isinstance(provenance.get("source_hashes"), dict):
        raise DamagedFile(path, "is no provenance")
    changed = differing(provenance["source_hashes"], hashes)
    if changed:
        raise Refused(f"{order.directory}: cannot be continued with other sources than it began with: "
                      f"{describe(changed)}")  # fmt: skip
    if provenance.get("config_sha256") != config_sha256(order.config):
        raise Refused(f"{order.directory}: was begun with another configuration")
    if order.nonce not in provenance.get("nonces", []):
        provenance["nonces"] = [*provenance.get("nonces", []), order.nonce]
        entry = {"git_commit": order.git_commit, "device": provenance.get("device")}
        provenance["continued"] = [*(provenance.get("continued") or []), entry]
    return provenance
