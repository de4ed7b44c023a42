"""Where scored rows come from and what a checkpoint was trained on: what makes a temperature held out or not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.checkpoint import Head
from kev.errors import KevError, NotFound
from kev.rounds.checkout import Checkout
from kev.rounds.overlap import find_overlap
from kev.rounds.pools import FIT_SPLITS, Corpus, PooledRead, Training, expand, pool_conflicts


@dataclass(frozen=True, slots=True)
class Placement:
    """The suite, by its path in the checkout, and the split that rows were read from."""

    suite: str
    split: str


def place_rows(path: Path, checkout: Checkout) -> Placement | None:
    """Where the rows in `path` are from; None if nothing beside them tells, or no suite here has that hash.

    Asked in this order: the report beside them; for a trial's calibration and development rows its provenance; for
    its transfer rows its result.
    """
    directory = path.resolve().parent
    report = _object(directory / "report.json")
    found = _place(report.get("suite_sha256"), report.get("split"), checkout)
    if found is None and directory.name in FIT_SPLITS:
        provenance = _object(directory.parent / "provenance.json")
        found = _place(provenance.get("suite_sha256"), directory.name, checkout)
    if found is None and directory.name == "transfer":
        transfer = _object(directory.parent / "result.json").get("transfer")
        if isinstance(transfer, dict):
            found = _place(transfer.get("suite_sha256"), "development", checkout)
    return found


def training_of(directory: Path, head: Head, checkout: Checkout) -> Training | None:
    """What the checkpoint in `directory` was trained on, by its head or by the provenance beside it; None if untold."""
    arguments = head.values.get("args")
    arguments = arguments if isinstance(arguments, dict) else {}
    found = _training(head.values.get("suite_sha256"), arguments.get("suite"), arguments.get("data"), checkout)
    if found is not None:
        return found
    provenance = _object(directory.resolve().parent / "provenance.json")
    config = provenance.get("config")
    config = config if isinstance(config, dict) else {}
    return _training(provenance.get("suite_sha256"), None, config.get("data"), checkout)


def held_out_problems(
    reads: list[tuple[str, Placement | None, tuple[str, ...] | None]], training: Training | None, checkout: Checkout
) -> list[str]:
    """Everything that keeps rows from being held out from `training`, or from being seen to be; [] if nothing does.

    `reads` are (name, placement, sources kept). Suites and sources are compared by name, then records by their text.
    """
    problems = [f"{name}: cannot be placed on a suite here" for name, place, _ in reads if place is None]
    if training is None:
        return [*problems, "what the checkpoint was trained on is not known, or is not here"]
    corpus = expand(training, checkout)
    problems += [f"{name}, which it was trained on, lists no sources to compare with" for name in corpus.unlisted]
    for name, place, sources in reads:
        if place is not None:
            read = PooledRead(name, place.suite, place.split, sources)
            conflicts = pool_conflicts(read, corpus, checkout) or _shared_texts(read, corpus, checkout)
            problems += [f"{name}: {conflict}" for conflict in conflicts]
    return problems


def _shared_texts(read: PooledRead, corpus: Corpus, checkout: Checkout) -> list[str]:
    pooled = _records(read.suite, read.split, checkout)
    shared = []
    for suite in sorted(corpus.suites):
        for split in ("train", *FIT_SPLITS):
            overlap = find_overlap(pooled, _records(suite, split, checkout), read.sources)
            if overlap is not None and not overlap.is_few:
                shared.append(
                    f"{overlap.shared} of its {overlap.total} records have the text of one in {suite} {split}"
                )
    return shared


def _records(path: str, split: str, checkout: Checkout) -> list[dict[str, Any]]:
    suite = checkout.suite(path)
    if suite is None or f"{split}.jsonl" not in suite.manifest.files:
        return []
    try:
        return suite.read_partition(split, allow_test=True)
    except NotFound:
        return []


def _training(sha256: Any, suite: Any, data: Any, checkout: Checkout) -> Training | None:
    path = checkout.suite_with_hash(sha256) if isinstance(sha256, str) else None
    if path is None and sha256 is None and isinstance(suite, str) and checkout.suite(suite) is not None:
        path = suite
    if path is None:
        return None
    return Training((path,), (data,) if isinstance(data, str) and data else ())


def _place(sha256: Any, split: Any, checkout: Checkout) -> Placement | None:
    if not isinstance(sha256, str) or not isinstance(split, str):
        return None
    path = checkout.suite_with_hash(sha256)
    return None if path is None else Placement(path, split)


def _object(path: Path) -> dict[str, Any]:
    try:
        value = files.read_json(path)
    except KevError:
        return {}
    return value if isinstance(value, dict) else {}
