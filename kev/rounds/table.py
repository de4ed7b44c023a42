"""Read-outs and verdicts as tables for people: every criterion with its value, its interval and its threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kev.records.spec import Criterion, RoundSpec, Stage
from kev.rounds.checks.panels import bucket_names
from kev.rounds.criteria import Outcome, Path, evaluate_all, lookup, operands
from kev.text import shorten, visible

RATES = ("acc", "confident_error_rate", "coverage_")
"""Metrics shown in per cent."""

OPERATOR_SIGNS = {">=": "≥", "<=": "≤"}
TITLE_WIDTH = 160
MARKS = {True: ("✓", "pass", "green"), False: ("✗", "fail", "red"), None: ("?", "not known", "yellow")}


def print_readout(value: Mapping[str, Any], spec: RoundSpec, console: Console | None = None) -> None:
    """The read-out as one table an arm, then what the rule chooses."""
    console = console or Console()
    console.print(Text(shorten(visible(f"Round {value['round']}: {value['registered']}"), TITLE_WIDTH), style="bold"))
    for arm, comparison in value["arms"].items():
        selectable = arm not in spec.arms or spec.arms[arm].select
        _print_arm(console, arm, comparison, spec.rule.criteria, note="" if selectable else "reported, never chosen")
    console.print()
    for note in value.get("notes", ()):
        console.print(_warning(note))
    for size, arms in value["ranking"].items():
        chosen = value["candidates"][size]
        rest = f"; then {', '.join(arms[1:])}" if len(arms) > 1 else ""
        console.print(Text(visible(f"candidate {size}: {chosen or 'none'}{rest}"), style="bold"))


def print_verdict(value: Mapping[str, Any], stage: Stage, console: Console | None = None) -> None:
    """A verdict as a table."""
    console = console or Console()
    console.print(Text(f"Round {value['round']}, stage {visible(value['stage'])}", style="bold"))
    _print_arm(console, value["arm"], value, stage.criteria)


@dataclass(frozen=True, slots=True)
class CriterionRow:
    """One criterion in words: the estimate (a difference where the criterion bounds one) and what it has to reach."""

    name: str
    estimate: str
    interval: str
    needs: str
    passed: bool | None


def criterion_rows(criteria: Mapping[str, Criterion], comparison: Mapping[str, Any]) -> list[CriterionRow]:
    """Every criterion in words, in the order of the rule."""
    plain = {name: criterion.to_json() for name, criterion in criteria.items()}
    return [
        _criterion_row(name, operands(plain[name])[0], outcome, comparison)
        for name, outcome in evaluate_all(plain, comparison).items()
    ]


def format_figure(value: float | None, metric: str, *, signed: bool = False) -> str:
    """A metric's value for people: rates in per cent with one decimal, others with three."""
    if value is None:
        return "not known"
    sign = "+" if signed else ""
    return f"{100 * value:{sign}.1f} %" if metric.startswith(RATES) else f"{value:{sign}.3f}"


def _print_arm(
    console: Console, arm: str, comparison: Mapping[str, Any], criteria: Mapping[str, Criterion], *, note: str = ""
) -> None:
    console.print()
    console.print(Text.assemble((visible(arm), "bold"), "  ", _mark(comparison["passed"]), f"  {note}" if note else ""))
    if comparison.get("panels"):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name in ("criterion", "estimate", "95 % interval", "needs"):
            table.add_column(name, overflow="fold")
        table.add_column("", no_wrap=True)
        for row in criterion_rows(criteria, comparison):
            table.add_row(Text(visible(row.name)), row.estimate, row.interval, row.needs, _mark(row.passed))
        console.print(table)
    for line in _remarks(comparison):
        console.print(line)


def _mark(passed: bool | None) -> Text:
    # A word beside the colour and the sign: either may not reach the reader.
    sign, word, style = MARKS[passed]
    return Text(f"{sign} {word}", style=style)


def _remarks(comparison: Mapping[str, Any]) -> list[Text]:
    out = []
    temperature, interval = comparison.get("temperature"), comparison.get("temperature_ci")
    if temperature is not None:
        kind = comparison.get("temperature_source", {}).get("kind", "")
        bounds = f" [{interval['lower']:.3f}, {interval['upper']:.3f}]" if interval else ""
        parent = comparison.get("parent_temperature")  # absent where rows of the parent are
        theirs = f"{parent:.3f}" if parent is not None else "not known"
        out.append(Text(f"T {temperature:.3f}{bounds} from {kind}; parent T {theirs}"))
        if comparison.get("temperature_source", {}).get("training_corpus"):
            out.append(_warning("T was fitted on rows of a suite that the arm was trained on"))
    out += [Text(visible(line)) for line in _length_lines(comparison)]
    out += [Text(visible(f"missing: {entry}"), style="yellow") for entry in comparison.get("missing", ())]
    out += [Text(visible(f"missing, optional: {entry}")) for entry in comparison.get("missing_optional", ())]
    out += [_warning(entry) for entry in comparison.get("notes", ())]
    out += [_warning(comparison["error"])] if "error" in comparison else []
    return out


def _length_lines(comparison: Mapping[str, Any]) -> list[str]:
    """Accuracy by length, candidate against parent, of every panel that has length buckets."""
    out = []
    for name, panel in comparison.get("panels", {}).items():
        buckets = bucket_names(panel["by_length"]["edges"]) if "by_length" in panel else []
        for bucket in buckets:
            entry = panel[f"acc_{bucket}"]
            ours, theirs = format_figure(entry["candidate"], "acc"), format_figure(entry["parent"], "acc")
            if entry["n"]:
                out.append(f"{name} {bucket}: acc {ours}, parent {theirs} ({entry['n']} questions)")
    return out


def _criterion_row(name: str, lefts: list[Path], outcome: Outcome, comparison: Mapping[str, Any]) -> CriterionRow:
    path = lefts[0]
    metric = path.metric or "acc"  # the unknowable share is a rate too
    bounded = path.field in ("delta", "lower", "upper")
    signed = bounded or len(lefts) > 1
    estimate, interval = outcome.left, ""
    if bounded:
        estimate, low, high = (
            lookup(comparison, Path(path.panel, path.metric, field)) for field in ("delta", "lower", "upper")
        )
        if low is not None and high is not None:
            interval = f"{format_figure(low, metric, signed=True)} to {format_figure(high, metric, signed=True)}"
    bound = f"{path.field} " if path.field in ("lower", "upper") else ""
    sign = OPERATOR_SIGNS.get(outcome.op, outcome.op)
    return CriterionRow(
        name,
        format_figure(estimate, metric, signed=signed),
        interval,
        f"{bound}{sign} {format_figure(outcome.right, metric, signed=signed)}",
        outcome.passed,
    )


def _warning(text: str) -> Text:
    return Text(visible(f"!!! {text}"), style="yellow")
