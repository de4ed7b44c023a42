"""What the numbers of a large read-out cost: 3 arms x 20 panels x 10,000 questions x 2,000 resamples.

    python benchmarks/readout.py [--rows N] [--panels N] [--samples N]

Everything is measured in one run: the engine on every panel, and beside it a straightforward loop that indexes the
rows of one resample after another, on a share of the resamples of one panel (said in the table, and scaled). The two
must agree. Rows are made up; records have one to four questions, and every panel has its own. Prints Markdown.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kev.metrics import (
    PAIRED_METRICS,
    Baseline,
    Resamples,
    Rows,
    metric,
    pair,
    paired_bootstrap,
    rows_from_json,
    served,
)

ARMS = 3
REGISTERED = ("acc", "ece", "brier")
"""The metrics that a panel usually has."""

PLAIN_SAMPLES = 10
Text = np.ndarray


@dataclass
class Spent:
    """CPU seconds of this process, all its threads."""

    seconds: float = 0.0

    def measure(self, work: Callable[[], object]) -> object:
        start = time.process_time()
        result = work()
        self.seconds += time.process_time() - start
        return result


def make_panel(number: int, n: int) -> list[Rows]:
    """A parent and three arms on the same `n` questions of three sources."""
    rng = np.random.default_rng(number)
    sizes = rng.integers(1, 5, size=n)
    record = np.repeat(np.arange(n), sizes)[:n]
    place = np.arange(n) - np.searchsorted(record, record)
    source = rng.permutation(n)[record] % 3
    options = rng.integers(2, 5, size=n)
    labels = rng.integers(0, options)
    order = rng.permutation(n)
    names = _texts(f"panel-{number:02d}/record-{r:05d}" for r in record)
    shared = {
        "ids": names, "groups": names, "questions": _texts(f"question-{p}" for p in place),
        "sources": _texts(f"source-{s}" for s in source), "tasks": _texts(f"task-{s}" for s in source),
        "types": _texts("choice" for _ in range(n)), "variants": _texts("clean" for _ in range(n)),
        "keys": _texts(("a", "b", "c", "d")[:k] for k in options), "labels": labels, "options": options,
        "has_logits": np.ones(n, np.bool_), "temperature": np.ones(n), "state_tokens": np.full(n, -1),
        "origins": _texts("made up" for _ in range(n)),
        **{name: _texts(None for _ in range(n)) for name in ("control_ids", "pair_ids", "siblings", "parents")},
    }  # fmt: skip
    inside = np.arange(4) < options[:, None]
    sides = []
    for strength in (1.0, 1.1, 1.2, 1.3):
        z = rng.normal(size=(n, 4)) + strength * (np.arange(4) == labels[:, None])
        e = np.where(inside, np.exp(z), 0.0)
        logits, p = np.where(inside, z, np.nan), e / e.sum(axis=1, keepdims=True)
        sides.append(Rows(**shared, logits=logits, p=p).take(order))
    return sides


def read_panel(sides: list[Rows], metrics: tuple[str, ...], resamples: Resamples) -> list[dict[str, list[float]]]:
    """What a read-out does with a panel whose rows are loaded: serve, measure, pair, resample."""
    parent = served(sides[0], 1.3)
    baseline = Baseline(parent, resamples=resamples)
    values = {name: metric(parent, name) for name in metrics}
    out = []
    for arm, raw in enumerate(sides[1:]):
        candidate = served(raw, 1.1 + 0.1 * arm)
        values = {name: metric(candidate, name) for name in metrics}
        found = baseline.compare(candidate, metrics)
        out.append({name: [each.delta, *each.ci95] for name, each in found.items() if values[name] is not None})
    return out


def plain_loop(sides: list[Rows], metrics: tuple[str, ...], samples: int) -> dict[str, list[float]]:
    """The differences of the first `samples` resamples of one arm, each measured by indexing its rows."""
    pairing = pair(served(sides[1], 1.1), served(sides[0], 1.3))
    members = np.split(np.argsort(pairing.clusters.of_row, kind="stable"),
                       np.cumsum(np.bincount(pairing.clusters.of_row))[:-1])  # fmt: skip
    first = np.cumsum((0, *pairing.clusters.per_source))
    rng = np.random.default_rng(0)
    out: dict[str, list[float]] = {name: [] for name in metrics}
    for _ in range(samples):
        drawn = [f + rng.integers(0, k, size=k) for f, k in zip(first, pairing.clusters.per_source, strict=False)]
        index = np.concatenate([members[number] for number in np.concatenate(drawn)])
        ours, theirs = pairing.candidate.take(index), pairing.parent.take(index)
        for name in metrics:
            out[name].append((metric(ours, name) or 0.0) - (metric(theirs, name) or 0.0))
    return out


def check_against(sides: list[Rows], metrics: tuple[str, ...], plain: dict[str, list[float]], samples: int) -> float:
    """The largest relative difference between the loop's interval and the engine's on the same few resamples."""
    found = paired_bootstrap(served(sides[1], 1.1), served(sides[0], 1.3), metrics, resamples=Resamples(samples))
    worst = 0.0
    for name in metrics:
        expected = np.quantile(plain[name], [0.025, 0.975])
        worst = max(worst, float(np.max(np.abs(np.array(found[name].ci95) - expected) / np.abs(expected))))
    return worst


def json_seconds_per_read(sides: list[Rows]) -> float:
    """CPU seconds to turn the parsed JSON of one panel's read into checked columns."""
    rows = sides[0]
    records = [
        {
            "id": rows.ids[r], "group": rows.groups[r], "question": rows.questions[r], "source": rows.sources[r],
            "task": rows.tasks[r], "type": "choice", "variant": "clean", "keys": list(rows.keys[r]),
            "label": int(rows.labels[r]), "p": rows.p[r, : rows.options[r]].tolist(),
            "logits": rows.logits[r, : rows.options[r]].tolist(), "inference_temperature": 1.0,
        }
        for r in range(len(rows))
    ]  # fmt: skip
    data = json.dumps(records).encode()
    from kev.files import parse_json

    spent = Spent()
    spent.measure(lambda: rows_from_json(parse_json(data), "rows.json"))
    return spent.seconds


def report(arguments: argparse.Namespace) -> Iterator[str]:
    n, panels, samples = arguments.rows, arguments.panels, arguments.samples
    yield (
        f"{ARMS} arms x {panels} panels x {n:,} questions x {samples:,} resamples, "
        f"numpy {np.__version__}, Python {sys.version.split()[0]}\n"
    )
    yield "| metrics of every panel | engine, CPU s | plain loop, CPU s | ratio | largest difference |"
    yield "|---|--:|--:|--:|--:|"
    for label, metrics in (("acc, ece, brier", REGISTERED), (f"all {len(PAIRED_METRICS)}", PAIRED_METRICS)):
        engine, resamples = Spent(), Resamples(samples)
        for number in range(panels):
            sides = make_panel(number, n)
            engine.measure(lambda sides=sides, metrics=metrics, drawn=resamples: read_panel(sides, metrics, drawn))
        plain = Spent()
        found = plain.measure(lambda sides=sides, metrics=metrics: plain_loop(sides, metrics, PLAIN_SAMPLES))
        worst = check_against(sides, metrics, found, PLAIN_SAMPLES)  # type: ignore[arg-type]
        whole = plain.seconds * ARMS * panels * samples / PLAIN_SAMPLES
        ratio = whole / engine.seconds
        yield f"| {label} | {engine.seconds:.2f} | {whole:,.0f} (scaled) | {ratio:,.0f} | {worst:.0e} |"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = peak / (2**20 if sys.platform == "darwin" else 2**10)
    loading = json_seconds_per_read(sides)
    yield (
        f"\nThe plain loop ran {PLAIN_SAMPLES} resamples of one arm and panel; its time is scaled to all of them. "
        f"Peak memory {megabytes:,.0f} MB, the made-up rows included. "
        f"Not in the table: reading one rows.json of {n:,} questions into columns, {loading:.2f} s."
    )


def _texts(values: Iterator[object]) -> Text:
    kept: dict[object, object] = {}
    return np.array([*(kept.setdefault(value, value) for value in values), None], dtype=object)[:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--panels", type=int, default=20)
    parser.add_argument("--samples", type=int, default=2_000)
    for line in report(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
