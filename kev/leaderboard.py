"""The leaderboard: every trial that has a result, ranked by transfer accuracy; what has none is listed apart."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import budget, files
from kev.clock import Clock
from kev.errors import KevError, NotFound, Refused
from kev.recipes import knobs_text
from kev.records.base import read_record
from kev.records.spawn import SpawnRecord
from kev.text import visible
from kev.trials import Figure, Trial, find_trials

FIGURES = {
    "dev_acc": ("clean", "acc"),
    "dev_nll": ("clean", "nll"),
    "dev_ece": ("clean", "ece"),
    "transfer_acc": ("transfer", "clean", "acc"),
    "transfer_brier": ("transfer", "clean", "brier"),
    "transfer_conf_err": ("transfer", "clean", "confident_error_rate"),
    "heldout_pairs": ("transfer", "paired_flip", "both_correct_rate"),
    "none_present": ("variants", "none_present", "acc"),
    "perm_flip": ("permutation", "flip_rate"),
}
"""Columns of figures, and where a result holds them."""

COLUMNS = {
    "dev acc": "dev_acc",
    "transfer acc": "transfer_acc",
    "Brier": "transfer_brier",
    "conf-err": "transfer_conf_err",
    "held-out pairs": "heldout_pairs",
    "none_present": "none_present",
    "perm flip": "perm_flip",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the leaderboard: what is written, and why it is not ranked, if it is not."""

    row: dict[str, Any]
    apart: str | None = None

    @property
    def id(self) -> str:
        return f"{self.row['study']}/{self.row['trial']}"


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Ranked entries, best first; entries without a transfer accuracy, by name; and the results that are damaged."""

    ranked: list[Entry]
    apart: list[Entry]
    damaged: list[KevError]

    @property
    def entries(self) -> list[Entry]:
        return [*self.ranked, *self.apart]


def read_leaderboard(runs: Path) -> Leaderboard:
    """The leaderboard of everything under `runs`. Raises NotFound without that directory."""
    trials, damaged = find_trials(runs)
    cards: dict[str, str | None] = {}
    for study in dict.fromkeys(trial.study for trial in trials):
        try:
            cards[study] = _admitted_gpu(runs, study)
        except KevError as error:
            damaged.append(error)
    entries = [_entry(trial, _cost(trial, cards)) for trial in trials]
    ranked = [entry for entry in entries if entry.apart is None]
    # Python's sort is stable, so trials that tie stay in the order of their names.
    ranked.sort(key=lambda entry: -float(entry.row["transfer_acc"]))
    return Leaderboard(ranked, [entry for entry in entries if entry.apart is not None], damaged)


def write_leaderboard(runs: Path, board: Leaderboard, clock: Clock) -> tuple[Path, Path]:
    """Replace `leaderboard.jsonl` and `leaderboard.md` under `runs`; returns their paths."""
    lines, page = runs / "leaderboard.jsonl", runs / "leaderboard.md"
    files.write_atomic(lines, b"".join(files.dump_json_line(entry.row) for entry in board.entries))
    files.write_atomic(page, markdown(board, f"{clock.now():%Y-%m-%d %H:%M} UTC").encode(errors="backslashreplace"))
    return lines, page


def markdown(board: Leaderboard, generated: str) -> str:
    """The leaderboard as a page: a table, what is not ranked and why, and what could not be read."""
    heads = ["study/trial", "base", "seed", *COLUMNS, "gates", "$", "knobs"]
    page = [
        "# Leaderboard",
        "",
        f"Generated {generated}, by transfer accuracy; $ is wall time at list prices, an estimate.",
        "",
    ]
    page += [_line(heads), _line(["---"] * len(heads))]
    page += [_line(_cells(entry)) for entry in board.entries]
    if board.apart:
        page += ["", "Not ranked, in no order of merit:", ""]
        page += [f"- {_plain(entry.id)}: {entry.apart}" for entry in board.apart]
    if board.damaged:
        page += ["", "Could not be read:", ""]
        page += [f"- {_plain(str(error))}" for error in board.damaged]
    return "\n".join(page) + "\n"


def estimate_usd(trial: Trial, gpu: object) -> Decimal | None:
    """What the trial's container cost at the list price of its cards, cores and memory; None where that is unknown.

    `gpu` is what its study was admitted for, like `H200:8`, if that is on record; otherwise the device that the
    result names is taken, once for each of its processes.
    """
    seconds = trial.figure("wall_seconds").value
    if trial.text("provenance", "device") != "cuda" or seconds is None or seconds < 0:
        return None
    try:
        rate = budget.hourly_rate(gpu or _device(trial), trial.config.get("full_ft") == 1)
    except Refused:
        return None
    return budget.recorded(rate * Decimal(str(seconds)) / 3600)


def _cost(trial: Trial, cards: Mapping[str, str | None]) -> Decimal | None:
    """As `estimate_usd`; None also where the study's record is damaged: it may name other cards than the result."""
    return estimate_usd(trial, cards[trial.study]) if trial.study in cards else None


def _entry(trial: Trial, cost: Decimal | None) -> Entry:
    figures = {name: trial.figure(*path) for name, path in FIGURES.items()}
    config, gates = trial.config, trial.find("gates", "checks")
    row = {
        "study": trial.study,
        "trial": trial.name,
        "legacy": trial.find("provenance", "legacy_checkpoint") is True,
        "base": config.get("base"),
        "seed": config.get("seed"),
        "config": config,
        "config_sha256": trial.text("provenance", "config_sha256") or (_digest(config) if config else None),
        "suite_sha256": trial.text("provenance", "suite_sha256"),
        "transfer_suite_sha256": trial.text("transfer", "suite_sha256"),
        "git": (trial.text("provenance", "git_commit") or "")[:8] or None,
        **{name: figure.value for name, figure in figures.items()},
        "gates": gates if isinstance(gates, dict) else None,
        "gates_passed": passed if isinstance(passed := trial.find("gates", "passed"), bool) else None,
        "train_s": trial.figure("training_resources", "wall_seconds").value,
        "wall_s": trial.figure("wall_seconds").value,
        "est_usd": None if cost is None else float(cost),
    }
    return Entry(files.without_non_finite(row), _reason(figures["transfer_acc"]))


def _reason(accuracy: Figure) -> str | None:
    if accuracy.value is None:
        return f"transfer accuracy is {accuracy.reason}"
    if not 0 <= accuracy.value <= 1:
        return f"transfer accuracy is {accuracy.value:g}, outside 0 to 1"
    return None


def _admitted_gpu(runs: Path, study: str) -> str | None:
    """The cards on the study's record; None where there is no record, or an old one. Raises DamagedFile."""
    try:
        return read_record(runs / f"{study}.spawn.json", SpawnRecord).gpu
    except NotFound:
        return None


def _device(trial: Trial) -> str | None:
    name = trial.text("provenance", "gpu") or ""
    types = [known for known in budget.GPU_HOURLY if known in name.upper().split()]
    world = trial.figure("training_resources", "world_size").value or 1
    return f"{types[0]}:{world:.0f}" if len(types) == 1 else None


def _digest(config: dict[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(config, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    ).hexdigest()


def _cells(entry: Entry) -> list[str]:
    row = entry.row
    figures = ["–" if row[name] is None else f"{row[name]:.4f}" for name in COLUMNS.values()]
    gates = {True: "passed", False: "failed", None: "–"}[row["gates_passed"]]
    cost = "–" if row["est_usd"] is None else f"{row['est_usd']:.2f}"
    return [entry.id, str(row["base"] or "–"), str("–" if row["seed"] is None else row["seed"]), *figures, gates, cost,
            knobs_text(row["config"])]  # fmt: skip


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    return visible(text).replace("|", "\\|")
