"""The part of the page about what came out of the rounds, with all that kev's own report says of it. Pure."""

from collections.abc import Iterable, Mapping

from kev.session_report import SessionReport
from kev.session_report.structure import ArmResult, PanelResult, RoundResult
from kevtui.format import MISSING
from kevtui.report.charts import number
from kevtui.report.markup import Markup, tag
from kevtui.report.results import OUTCOME, count, interval
from kevtui.report.tables import moment, table

_HOLDS = {True: "holds", False: "does not hold", None: "not decided"}


def results(report: SessionReport | None) -> Iterable[Markup]:
    """Every round with its arms and the stages that were decided."""
    for each in report.rounds if report is not None else ():
        yield from _round(each)


def _round(result: RoundResult) -> Iterable[Markup]:
    yield tag("h3", f"r{result.round}: {count(result.arms_tried)} arms tried, {count(result.arms_read)} read in full")
    chosen = ", ".join(f"{size}: {arm or 'none'}" for size, arm in result.candidates.items()) or "none"
    readout = result.readout or "none yet"
    told = f"{result.spec}, registered {moment(result.registered_at)}; candidates: {chosen}; read-out: {readout}."
    yield tag("p", told)
    for arm in result.arms:
        yield from _arm(arm, arm.arm)
    for verdict in result.verdicts:
        yield tag("p", f"Stage {verdict.stage}, {verdict.arm or MISSING}: {OUTCOME[verdict.passed]} ({verdict.path}).")
        yield from _arm(verdict.result, f"{verdict.arm or MISSING} at {verdict.stage}")


def _arm(arm: ArmResult, title: str) -> Iterable[Markup]:
    yield tag("h3", f"{title}: {OUTCOME[arm.passed]}{'' if arm.complete else '; not read in full'}")
    source = f", fitted on {arm.temperature_source}" if arm.temperature_source else ""
    yield tag(
        "p",
        f"Checkpoint {arm.checkpoint or 'unknown'} at T {number(arm.temperature)}{source}, against "
        f"{arm.parent or 'a parent'}, {arm.parent_checkpoint or 'unknown'}, at T {number(arm.parent_temperature)}."
        + (f" Missing: {', '.join(arm.missing)}." if arm.missing else ""),
    )
    yield from _criteria(arm.criteria)
    rows = [row for panel in arm.panels for row in _panel(panel)]
    if rows:
        heads = ("panel", "n", "suite, split", "metric", "arm's", "parent's", "difference", "95 % interval", "report")
        yield table(heads, rows)
    else:
        yield tag("p", "No figures yet.", class_="missing")


def _criteria(held: Mapping[str, bool | None]) -> Iterable[Markup]:
    words = (f"{name}: {_HOLDS[value]}" for name, value in held.items())
    if held:
        yield tag("p", f"Criteria: {'; '.join(words)}.")


def _panel(panel: PanelResult) -> Iterable[tuple[str, ...]]:
    suites = ", ".join(dict.fromkeys(f"{part.suite or MISSING} {part.split or MISSING}" for part in panel.reads))
    reports = ", ".join(part.report or MISSING for part in panel.reads)
    for figure in panel.figures:
        yield (
            panel.name, count(figure.n), suites or MISSING, figure.metric, number(figure.candidate),
            number(figure.parent), number(figure.delta), interval(figure.lower, figure.upper), reports or MISSING,
        )  # fmt: skip
