"""The report as Markdown. Whatever comes from files is made safe for a table and for a terminal."""

import math
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from kev.session_report.structure import ArmResult, Figure, Incident, Money, PanelResult, RoundResult, SessionReport
from kev.text import shorten, visible

SHOWN = 40
"""Incidents that are written out; the journal has them all."""


def to_markdown(report: SessionReport, *, level: int = 1) -> str:
    """The report under a heading of `level`.

    No heading names a round: in a plan, a heading that does is that round's own section.
    """
    head, sub = "#" * level, "#" * (level + 1)
    word = " (simulated money)" if report.simulated else ""
    parts = [
        f"{head} Session {_safe(report.session)}{word}",
        _times(report),
        f"{sub} Money",
        "\n".join(_money(report.money, report.simulated)),
        f"{sub} Pending at the provider",
        "\n".join(_pending(report)) or "Nothing.",
        f"{sub} Incidents",
        "\n".join(_incidents(report.incidents)) or "None.",
        f"{sub} Results",
        "\n\n".join(block for each in report.rounds for block in _round(each)) or "No round.",
        f"{sub} Next steps",
        "\n".join(
            f"{number}. {_safe(step.what)} `{_code(step.command)}`. Evidence: {_safe(step.evidence)}."
            for number, step in enumerate(report.next_steps, start=1)
        )
        or "None that the records speak for.",
    ]
    if report.findings:
        parts += [f"{sub} Files that could not be believed", "\n".join(f"- {_safe(each)}" for each in report.findings)]
    return "\n\n".join(parts) + "\n"


def _times(report: SessionReport) -> str:
    opened = f", opened {_time(report.opened_at)}" if report.opened_at else ""
    closed = f", closed {_time(report.closed_at)}" if report.closed_at else ""
    return f"As of {_time(report.at)}: {_safe(report.mode)}{opened}{closed}."


def _money(money: Money, simulated: bool) -> Iterable[str]:
    kind = "simulated US dollars" if simulated else "US dollars"
    yield f"| what | {kind} |"
    yield "| --- | ---: |"
    yield f"| authorization | {_usd(money.authorization)} |"
    yield f"| kept back | {_usd(money.reserve)} |"
    cycle = f", cycle {money.cycle}" if money.cycle else ""
    yield f"| meter at the beginning{cycle} | {_usd(money.baseline)} |"
    read = f", read {_time(money.read_at)}" if money.read_at else ""
    yield f"| meter, last reading{read} | {_usd(money.metered)} |"
    yield f"| billed, as of the same | {_usd(money.billed)} |"
    carried = f" ({_usd(money.carried)} of it in cycles that ended)" if money.carried else ""
    yield f"| spent since the beginning{carried} | {_usd(money.spent)} |"
    for row in money.running:
        yield f"| bound of: {_safe(row.name)} | {_usd(row.usd)} |"
    more = "" if money.committed_is_complete else " or more"
    yield f"| bounds of everything unsettled | {_usd(money.committed)}{more} |"
    yield f"| headroom | {_usd(money.headroom)} |"
    if money.gateway_authorization is not None:
        yield f"| AI gateway, of {_usd(money.gateway_authorization)} | {_usd(money.gateway_spent)} |"
    if money.gap:
        alarm = "**Billed is far above metered.** " if money.alarming else ""
        yield ""
        yield f"{alarm}{_safe(money.gap)}."


def _pending(report: SessionReport) -> Iterable[str]:
    for each in report.pending:
        attempt = f", attempt {each.attempt} of {each.attempts}" if each.attempts else ""
        call = f", call {_safe(each.call)}" if each.call else ""
        since = f", since {_time(each.since)}" if each.since else ""
        cost = f"up to ${each.usd:.2f} more" if each.usd is not None else "nobody knows what it can cost"
        how = f"{_safe(each.state)}{attempt}{call}{since}"
        yield f"- {_safe(each.name)}: {how}, {cost}. Finish it: `{_code(each.command)}`"


def _incidents(incidents: tuple[Incident, ...]) -> Iterable[str]:
    for each in incidents[:SHOWN]:
        times = f" ({each.times} times, last {_time(each.last)})" if each.times > 1 else ""
        subject = f" {_safe(each.subject)}:" if each.subject else ""
        text = _safe(shorten(each.text, 300))
        yield f"- {_time(each.first)} {_safe(each.severity)} {_safe(each.kind)}:{subject} {text}{times}"
    if len(incidents) > SHOWN:
        yield f"- and {len(incidents) - SHOWN} more in the journal"


def _round(result: RoundResult) -> Iterable[str]:
    chosen = ", ".join(f"{size}: {arm or 'none'}" for size, arm in result.candidates.items()) or "none"
    readout = f"read-out `{_code(result.readout)}`" if result.readout else "no read-out yet"
    yield (
        f"**r{result.round}** (`{_code(result.spec)}`, registered {_time(result.registered_at)}): {result.arms_tried} "
        f"arms tried, {result.arms_read} read in full; candidates: {_safe(chosen)}; {readout}."
    )
    for arm in result.arms:
        yield from _arm(arm, arm.arm)
    for verdict in result.verdicts:
        subject = f"Stage {_safe(verdict.stage)}, {_safe(verdict.arm or '?')}"
        yield f"{subject}: {_outcome(verdict.passed)} (`{_code(verdict.path)}`)."
        yield from _arm(verdict.result, f"{verdict.arm or '?'} at {verdict.stage}")


def _arm(arm: ArmResult, title: str) -> Iterable[str]:
    failed = [name for name, value in arm.criteria.items() if value is not True]
    lacks = f"; lacks {', '.join(arm.missing)}" if arm.missing else ""
    fails = f"; does not hold: {', '.join(failed)}" if failed else ""
    source = f", fitted on {arm.temperature_source}" if arm.temperature_source else ""
    yield _safe(
        f"{title}: {_outcome(arm.passed)}{fails}{lacks}. Checkpoint {arm.checkpoint or 'unknown'} at T "
        f"{_number(arm.temperature)}{source}, against {arm.parent_checkpoint or 'unknown'} at T "
        f"{_number(arm.parent_temperature)}."
    )
    rows = [row for panel in arm.panels for row in _panel(panel)]
    if rows:
        heads = "| panel | n | suite, split | metric | arm | parent | difference [95 %] | report |\n"
        yield heads + "| --- | ---: | --- | --- | ---: | ---: | --- | --- |\n" + "\n".join(rows)


def _panel(panel: PanelResult) -> Iterable[str]:
    suites = ", ".join(dict.fromkeys(f"{part.suite or '?'} {part.split or '?'}" for part in panel.reads)) or "?"
    reports = ", ".join(f"`{_code(part.report)}`" for part in panel.reads if part.report) or "?"
    for figure in panel.figures:
        sides = f"{_number(figure.candidate)} | {_number(figure.parent)} | {_difference(figure)}"
        number = figure.n if figure.n is not None else "?"
        yield f"| {_safe(panel.name)} | {number} | {_safe(suites)} | {_safe(figure.metric)} | {sides} | {reports} |"


def _difference(figure: Figure) -> str:
    if figure.delta is None:
        return "–"
    interval = f" [{figure.lower:+.4f}, {figure.upper:+.4f}]" if None not in (figure.lower, figure.upper) else ""
    return f"{figure.delta:+.4f}{interval}"


def _outcome(passed: bool | None) -> str:
    return {True: "passed", False: "did not pass", None: "not decided"}[passed]


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.4f}"


def _usd(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"{amount:,.2f}"


def _time(moment: datetime | None) -> str:
    return "–" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def _safe(text: str) -> str:
    return visible(text).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return visible(text).replace("`", "'").replace("|", "\\|")
