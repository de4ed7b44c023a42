"""What makes two trials the same recipe, and which of its settings are worth showing."""

import json
from typing import Any

from kev.records.plan import TrialConfig
from kev.text import shorten

MAX_SHOWN = 60
"""Characters of one setting that are shown."""

SEED_AND_SNAPSHOTS = {
    "seed",
    "snapshot_fractions",
    "snapshot_every_steps",
    "snapshot_hub_repo",
    "save_every_steps",
}
"""Settings that trials of one recipe may differ in."""

INFRASTRUCTURE = SEED_AND_SNAPSHOTS | {
    "base",
    "base_revision",
    "dtype",
    "checkpointing",
    "batch",
    "accum",
    "perm_frac",
    "shared_prefix",
}
"""Settings that say where and how a trial runs rather than what it learns; not shown as knobs."""


def recipe_key(config: dict[str, Any]) -> str:
    """The whole configuration but for seed and snapshots, spelled so that equal recipes have equal keys."""
    kept = {key: value for key, value in _with_defaults(config).items() if key not in SEED_AND_SNAPSHOTS}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False, default=str)


def knobs(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that differ from their defaults and are not infrastructure, in the order of the configuration."""
    defaults = _defaults()
    return {
        key: value
        for key, value in config.items()
        if key not in INFRASTRUCTURE and not (key in defaults and defaults[key] == value)
    }


def knobs_text(config: dict[str, Any]) -> str:
    """`knobs` on one line."""
    return " ".join(f"{key}={shorten(str(value), MAX_SHOWN)}" for key, value in knobs(config).items())


def _with_defaults(config: dict[str, Any]) -> dict[str, Any]:
    # A trial that spells out a default and one that leaves it out were trained alike.
    return {key: value for key, value in (_defaults() | config).items() if value is not None}


def _defaults() -> dict[str, Any]:
    return {name: field.default for name, field in TrialConfig.model_fields.items() if not field.is_required()}
