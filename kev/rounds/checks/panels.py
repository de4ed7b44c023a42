"""Panels: their reads, filters and metrics, at the rule stage and at every confirmation stage."""

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence

from kev.document import JsonPath
from kev.errors import DamagedFile, KevError
from kev.files import read_bytes
from kev.records.spec import ByLength, Panel
from kev.rounds.checks.reads import is_inside
from kev.rounds.exclusions import parse_exclusions
from kev.rounds.sides import TRANSFER
from kev.rounds.subject import Subject
from kev.spelling import nearest
from kev.suite import explain_difference

PAIRED_METRICS = (
    "acc",
    "nll",
    "brier",
    "mean_conf",
    "confident_error_rate",
    "coverage_at_0_9",
    "confidence_bias",
    "ece",
    "aurc",
    "coverage_at_5pct_error",
    "coverage_at_1pct_error",
)
"""What a panel may list under `metrics`: each has both sides' values, a difference and its interval."""

REPORT_METRICS = (
    *PAIRED_METRICS,
    "n",
    "accuracy_at_0_9",
    "error_rate_at_0_9",
    "score_mae",
    "ranked_probability_score",
)
"""What a panel may list under `report`: both sides' values only."""

LENGTH_METRICS = ("acc", "ece", "brier", "confident_error_rate")
LENGTH_EDGES = (8192, 16384, 32768, 65536)

_SHA256 = re.compile("[0-9a-f]{64}")


def check_panels(subject: Subject) -> None:
    """Every panel of the rule and of the stages, and the unknowable reads."""
    for place, stage in subject.stages():
        for name, panel in stage.panels.items():
            where = (*place, "panels", name)
            _check_reads(subject, panel, where)
            _check_metrics(subject, panel, where)
            _check_sources(subject, panel, where)
            _check_exclude_file(subject, panel, where)
            _check_lengths(subject, panel, where)
            for reference, directory in (panel.versus or {}).items():
                if not is_inside(directory, "runs"):
                    subject.problems.add("bad-path", (*where, "versus", reference), f"{directory!r} is not under runs/")
                elif not subject.checkout.has(f"{directory}/rows.json"):
                    message = f"{directory}/rows.json is not there; the panel is reported without this reference"
                    subject.problems.warn("missing-reference", (*where, "versus", reference), message)
        if stage.unknowable is not None:
            subject.check_tag(stage.unknowable, (*place, "unknowable"))


def bucket_names(edges: Sequence[int]) -> list[str]:
    """The length buckets of increasing edges in tokens: disjoint ones first, then the tails."""
    sizes = [edge // 1024 for edge in edges]
    between = [f"{low}k_{high}k" for low, high in itertools.pairwise(sizes)]
    tails = [f"{size}k_plus" for size in sizes]
    return [f"under_{sizes[0]}k", *between, tails[-1], *tails[:-1]]


def panel_edges(panel: Panel) -> Sequence[int]:
    """The edges of a panel's length buckets; () when it has none."""
    if isinstance(panel.by_length, ByLength):
        return panel.by_length.edges or LENGTH_EDGES
    return LENGTH_EDGES if panel.by_length else ()


def _check_reads(subject: Subject, panel: Panel, where: JsonPath) -> None:
    if not panel.reads:
        subject.problems.add("missing-key", (*where, "reads"), "is empty: a panel needs rows")
    for index, tag in enumerate(panel.reads):
        subject.check_tag(tag, (*where, "reads", index), transfer=True)
        if tag in panel.reads[:index]:
            subject.problems.add("repeated-read", (*where, "reads", index), f"{tag} is there already")


def _check_metrics(subject: Subject, panel: Panel, where: JsonPath) -> None:
    if not panel.metrics and not panel.report:
        subject.problems.add("nothing-computed", where, "lists neither metrics nor report: nothing is computed")
    for key, names, known in (("metrics", panel.metrics, PAIRED_METRICS), ("report", panel.report, REPORT_METRICS)):
        for index, name in enumerate(names):
            if name not in known:
                message = f"there is no metric {name!r}{nearest(name, known)}"
                subject.problems.add("unknown-metric", (*where, key, index), message)
            elif name in names[:index] or (key == "report" and name in panel.metrics):
                subject.problems.add("repeated-metric", (*where, key, index), f"{name} is there already")


def _check_sources(subject: Subject, panel: Panel, where: JsonPath) -> None:
    listed = listed_sources(subject, panel)
    kept = [panel.source] if isinstance(panel.source, str) else panel.source or []
    for key, names in (("source", kept), ("exclude_sources", panel.exclude_sources or [])):
        for index, name in enumerate(names):
            place = (*where, key) if key == "source" and isinstance(panel.source, str) else (*where, key, index)
            if listed is not None and name not in listed:
                subject.problems.add(
                    "unknown-source", place, f"no suite of this panel lists {name}{nearest(name, listed)}"
                )
            if key == "exclude_sources" and name in kept:
                subject.problems.add("contradiction", place, f"{name} is both kept and left out")


def listed_sources(subject: Subject, panel: Panel) -> set[str] | None:
    """Every source that the panel's suites list; None when one of them is not known."""
    listed: set[str] = set()
    for path in _suite_paths(subject, panel):
        suite = subject.checkout.suite(path) if path is not None else None
        if suite is None or not suite.manifest.listed_sources():
            return None
        listed |= suite.manifest.listed_sources()
    return listed


def _suite_paths(subject: Subject, panel: Panel) -> Iterator[str | None]:
    for tag in panel.reads:
        if tag == TRANSFER:
            yield from subject.transfer_suites() or (None,)
        else:
            read = subject.spec.reads.get(tag)
            yield read.suite if read is not None else None


def _check_exclude_file(subject: Subject, panel: Panel, where: JsonPath) -> None:
    excluded = panel.exclude_file
    if excluded is None:
        return
    place = (*where, "exclude_file")
    if not _SHA256.fullmatch(excluded.sha256):
        subject.problems.add("bad-hash", (*place, "sha256"), "should be 64 hexadecimal digits in lower case")
    if not (
        is_inside(excluded.path, "runs") or is_inside(excluded.path, "evals") or is_inside(excluded.path, "experiments")
    ):
        subject.problems.add(
            "bad-path", (*place, "path"), f"{excluded.path!r} is not under runs/, evals/ or experiments/"
        )
        return
    if not subject.checkout.has(excluded.path):
        subject.problems.missing(excluded.path, (*place, "path"), "what this panel leaves out")
        return
    try:
        data = read_bytes(subject.checkout.root / excluded.path)
    except KevError as error:
        subject.problems.add("damaged-file", (*place, "path"), str(error))
        return
    if hashlib.sha256(data).hexdigest() != excluded.sha256:
        difference = explain_difference(data, excluded.sha256)
        message = f"{excluded.path} is not the file that was registered{difference}"
        subject.problems.add("changed-file", (*place, "sha256"), message)
        return
    # Its hash is registered: what cannot be read then would keep the round from ever being read out.
    try:
        exclusions = parse_exclusions(subject.checkout.root / excluded.path, data)
    except DamagedFile as error:
        subject.problems.add("damaged-file", (*place, "path"), f"{excluded.path}: {error.reason}")
        return
    if not exclusions:
        message = f"{excluded.path} names nothing under ids, sources or tasks, so nothing is left out"
        subject.problems.warn("empty-exclusions", (*place, "path"), message)


def _check_lengths(subject: Subject, panel: Panel, where: JsonPath) -> None:
    if not panel.by_length:
        return
    place = (*where, "by_length")
    if isinstance(panel.by_length, ByLength):
        edges, tokenizer = panel.by_length.edges, panel.by_length.tokenizer
        if edges is not None and (
            not edges
            or any(edge <= 0 or edge % 1024 for edge in edges)
            or any(low >= high for low, high in itertools.pairwise(edges))
        ):
            subject.problems.add("bad-edges", (*place, "edges"), "should be increasing multiples of 1024, above 0")
        if tokenizer is not None and len(tokenizer) != 2:
            subject.problems.add("bad-tokenizer", (*place, "tokenizer"), "should be a name and a revision")
    for tag in panel.reads:
        read = subject.spec.reads.get(tag)
        if tag == TRANSFER or (read is not None and read.suite is None):
            subject.problems.add("no-lengths", place, f"the read {tag} has no suite whose states could be measured")
