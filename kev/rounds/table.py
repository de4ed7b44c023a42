"""Read-outs and verdicts as tables for people: every criterion with its value, its interval and its threshold."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kev.records.spec import Criterion, RoundSpec, Stage
from kev.rounds.criteria import Outcome, Path, evaluate_all, lookup, operands
from kev.text import visible

RATES = ("acc", "confident_error_rate", "coverage_")
"""Metrics shown in per cent."""

MARKS = {True: ("✓", "pass", "green"), False: ("✗", "fail", "red"), None: ("?", "not known", "yellow")}


def print_readout(value: Mapping[str, Any], spec: RoundSpec, console: Console | None = None) -> None:
    """The read-out as one table an arm, then what the rule chooses."""
    console = console or Console()
    console.print(Text(f"Round {value['round']}: {visible(str(value['registered']))}", style="bold"))
    for arm, comparison in value["arms"].items():
        selectable = arm not in spec.arms or spec.arms[arm].select
        _print_arm(console, arm, comparison, spec.rule.criteria, note="" if selectable else "reported, never chosen")
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


def criterion_rows(
    criteria: Mapping[str, Criterion], comparison: Mapping[str, Any]
) -> list[tuple[str, str, str, str, bool | None]]:
    """Name, value, interval, threshold and outcome of every criterion."""
    plain = {name: criterion.to_json() for name, criterion in criteria.items()}
    rows = []
    for name, outcome in evaluate_all(plain, comparison).items():
        lefts, _ = operands(plain[name])
        rows.append((name, *_figures(lefts, outcome, comparison), outcome.passed))
    return rows


def format_figure(value: float | None, metric: str, *, signed: bool = False) -> str:
    """A metric's value for people: rates in per cent with one decimal, others with three."""
    if value is None:
        return "not known"
    sign = "+" if signed else ""
    return f"{100 * value:{sign}.1f} %" if metric.startswith(RATES) else f"{value:{sign}.3f}"


def _print_arm(
    console: Console, arm: str, comparison: Mapping[str, Any], criteria: Mapping[str, Criterion], *, note: str = ""
) -> None:
    mark, word, style = MARKS[comparison["passed"]]
    table = Table(title_justify="left", title=Text(visible(arm)) + Text(f"  {mark} {word}", style=style), expand=False)
    for name in ("criterion", "value", "95 % interval", "needs"):
        table.add_column(name, overflow="fold")
    table.add_column("", no_wrap=True)
    for name, value, interval, threshold, passed in criterion_rows(criteria, comparison):
        mark, word, style = MARKS[passed]
        table.add_row(Text(visible(name)), value, interval, threshold, Text(f"{mark} {word}", style=style))
    console.print(table)
    for line in _remarks(comparison, note):
        console.print(line)


def _remarks(comparison: Mapping[str, Any], note: str) -> list[Text]:
    out = [Text(note)] if note else []
    temperature, interval = comparison.get("temperature"), comparison.get("temperature_ci")
    if temperature is not None:
        kind = comparison.get("temperature_source", {}).get("kind", "")
        bounds = f" [{interval['lower']:.3f}, {interval['upper']:.3f}]" if interval else ""
        parent = comparison["parent_temperature"]
        out.append(Text(f"T {temperature:.3f}{bounds} from {kind}; parent T {parent:.3f}"))
        if comparison.get("temperature_source", {}).get("training_corpus"):
            out.append(_warning("T was fitted on rows of a suite that the arm was trained on"))
    out += [Text(visible(f"missing: {entry}"), style="yellow") for entry in comparison.get("missing", ())]
    out += [Text(visible(f"missing, optional: {entry}")) for entry in comparison.get("missing_optional", ())]
    out += [_warning(entry) for entry in comparison.get("notes", ())]
    return out


def _figures(lefts: list[Path], outcome: Outcome, comparison: Mapping[str, Any]) -> tuple[str, str, str]:
    path = lefts[0]
    metric = path.metric or "acc"  # the unknowable share is a rate too
    signed = path.field in ("delta", "lower", "upper") or len(lefts) > 1
    interval = ""
    if path.field in ("delta", "lower", "upper"):
        low, high = (lookup(comparison, Path(path.panel, path.metric, field)) for field in ("lower", "upper"))
        if low is not None and high is not None:
            interval = f"{format_figure(low, metric, signed=True)} to {format_figure(high, metric, signed=True)}"
    return (
        format_figure(outcome.left, metric, signed=signed),
        interval,
        f"{outcome.op} {format_figure(outcome.right, metric, signed=signed)}",
    )


def _warning(text: str) -> Text:
    return Text(visible(f"!!! {text}"), style="yellow")
