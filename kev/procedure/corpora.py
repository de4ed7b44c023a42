"""Nothing is trained on what a closed model wrote. A manifest says so of its corpus, and is believed.

    "closed_model_output": true                     of the whole corpus, or a list of the sources that hold it
    "sources": {NAME: {"closed_model": true}}       of one source
    "teacher": {"closed": true}                     of the model that made the labels or the texts

`inputs.components` are corpora in their turn. A source named for the hosted reference model, `jev`, is one without
further words.
"""

import re
from pathlib import Path
from typing import Any

from kev.errors import KevError, Refused
from kev.records.suite import Manifest
from kev.suite import read_suite

HOSTED = re.compile(r"jev(?![a-z])", re.IGNORECASE)
DEPTH = 8
"""Components of components, at most."""


def closed_output(manifest: Manifest) -> str | None:
    """What of a corpus a closed model wrote, in words; None if its manifest names nothing."""
    extra = manifest.model_extra or {}
    said = extra.get("closed_model_output")
    if said:
        return f"closed_model_output: {', '.join(map(str, said))}" if isinstance(said, list) else "closed_model_output"
    for key in ("teacher", "teachers", "generator", "generators"):
        if _is_closed(extra.get(key)):
            return f"{key} is a closed model"
    if isinstance(manifest.sources, dict):
        for name, entry in manifest.sources.items():
            if isinstance(entry, dict) and (entry.get("closed_model") or entry.get("closed_model_output")):
                return f"source {name} is the output of a closed model"
    named = sorted(name for name in manifest.training_sources() if HOSTED.match(name))
    return f"source {named[0]} is the output of a hosted model" if named else None


def check_corpus(root: Path, directory: Path, manifest: Manifest, *, depth: int = DEPTH) -> None:
    """Raises Refused for a corpus, or a component of it under `root`, that holds a closed model's output."""
    found = closed_output(manifest)
    if found is not None:
        raise Refused(f"{directory}: is not trained on: its manifest says that it holds a closed model's output "
                      f"({found})")  # fmt: skip
    inner = manifest.inputs.get("components") if isinstance(manifest.inputs, dict) else None
    for name, entry in inner.items() if isinstance(inner, dict) else ():
        if isinstance(entry, dict):
            check_corpus(root, directory / f"component {name}", Manifest.model_construct(**_known(entry)), depth=0)
        if depth:
            for path in sorted((root / "evals").glob(f"**/{_plain(name)}/manifest.json")):
                try:
                    component = read_suite(path.parent)
                except KevError:
                    continue  # the corpus itself was read; a component that is damaged is named by `kev.suite check`
                check_corpus(root, path.parent, component.manifest, depth=depth - 1)


def _known(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("closed_model_output", "teacher", "teachers", "generator", "generators")
            if key in entry}  # fmt: skip


def _plain(name: str) -> str:
    plain = name.removesuffix("-extra").removesuffix("-train")
    return "".join(each if each.isalnum() or each in "._-" else "?" for each in plain)


def _is_closed(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_closed, value))
    return isinstance(value, dict) and bool(value.get("closed") or value.get("weights") == "closed")
