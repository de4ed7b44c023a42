"""The report as one HTML page that needs nothing else: no script, no address, its own style, light or dark. Pure."""

from collections.abc import Iterable

from kev.session_report import SessionReport
from kev.session_report.structure import Money as Account
from kev.session_report.structure import Pending
from kevtui.format import MISSING, age, money
from kevtui.observe.snapshot import Money, Snapshot
from kevtui.report import charts, results, rounds
from kevtui.report.gather import Material
from kevtui.report.markup import Markup, tag
from kevtui.report.style import STYLE
from kevtui.report.tables import moment, table

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A browser then loads nothing for this page, whatever a file managed to put on it."""

SHOWN = 200
"""Incidents and alerts that are written out."""


def to_html(material: Material) -> str:
    """The whole page."""
    snapshot, report = material.snapshot, material.report
    name = report.session if report is not None else snapshot.title
    title = f"Report of {name}"
    body = tag(
        "main",
        tag("h1", title),
        *_banner(material),
        _section("Money", _money(snapshot.money, report), charts.spend(snapshot.money)),
        _section("Needs attention", *_alerts(snapshot)),
        _section("Pending at the provider", *_pending(report)),
        _section("Step rates", *results.trials(snapshot)),
        _section("Criteria", *results.criteria(snapshot)),
        _section("Confirmation stages", *results.verdicts(snapshot)),
        _section("Results", *rounds.results(report)),
        _section("Incidents", *_incidents(report)),
        _section("Next steps", *_steps(report)),
        _section("Files that could not be believed", *_findings(snapshot, report)),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", title),
        Markup(f"<style>{STYLE}</style>"),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _section(title: str, *parts: str) -> Markup:
    return tag("section", tag("h2", title), *(parts or (tag("p", "None."),)))


def _banner(material: Material) -> Iterable[Markup]:
    snapshot, report = material.snapshot, material.report
    mode = f"{report.mode}; " if report is not None else ""
    opened = f"; opened {moment(report.opened_at)}" if report is not None and report.opened_at else ""
    closed = f"; closed {moment(report.closed_at)}" if report is not None and report.closed_at else ""
    at = snapshot.taken_at if report is None else report.at
    yield tag("p", f"{mode}as of {moment(at)}{opened}{closed}.")
    if snapshot.sample:
        yield tag("p", tag("strong", "SAMPLE: "), "its files say that they are made up.", class_="notice")
    if material.simulated:
        yield tag("p", tag("strong", "SIMULATED MONEY: "), "nothing of it was paid.", class_="notice")
    if material.why:
        yield tag("p", material.why, class_="notice")


def _money(known: Money, report: SessionReport | None) -> Markup:
    rows = list(_account(report.money)) if report is not None else list(_seen(known))
    rows.append(("burn rate per hour", money(known.burn_per_hour)))
    return table(("what", "simulated US dollars" if known.simulated else "US dollars"), rows)


def _account(known: Account) -> Iterable[tuple[str, str]]:
    """The session's account, row for row as kev's own report has it."""
    yield "authorization", money(known.authorization)
    yield "kept back", money(known.reserve)
    yield f"meter at the beginning{f', cycle {known.cycle}' if known.cycle else ''}", money(known.baseline)
    yield f"meter, last reading, of {moment(known.read_at)}", money(known.metered)
    yield "billed, as of the same", money(known.billed)
    carried = f", {money(known.carried)} of it in cycles that ended" if known.carried else ""
    yield f"spent since the beginning{carried}", money(known.spent)
    for row in known.running:
        yield f"bound of {row.name}", money(row.usd)
    yield "bounds of everything unsettled", money(known.committed) + ("" if known.committed_is_complete else " or more")
    yield "headroom", money(known.headroom)
    if known.gateway_authorization is not None:
        yield "AI gateway", f"{money(known.gateway_spent)} of {money(known.gateway_authorization)}"
    if known.gap:
        yield "billed far above metered" if known.alarming else "billed and metered", known.gap


def _seen(known: Money) -> Iterable[tuple[str, str]]:
    """What a Snapshot knows of the money where there is no account of a session."""
    yield "authorization", money(known.authorization)
    yield "kept back", money(known.reserve)
    yield "spent since the beginning", money(known.spent)
    yield (
        "committed: bounds of everything unsettled",
        money(known.committed) + ("" if known.committed_complete else " or more"),
    )
    yield "headroom", money(known.headroom)
    yield "last reading of the meter", f"{moment(known.reading_at)}{_stale(known)}"
    if known.gateway_authorization is not None:
        yield "AI gateway", f"{money(known.gateway_spent)} of {money(known.gateway_authorization)}"


def _stale(known: Money) -> str:
    return f" (stale: {age(known.reading_age_s)} old)" if known.reading_stale else ""


def _alerts(snapshot: Snapshot) -> Iterable[Markup]:
    if snapshot.alerts:
        rows = [(alert.severity.value, alert.subject, alert.text) for alert in snapshot.alerts[:SHOWN]]
        yield table(("severity", "subject", "what"), rows)
        yield from _more(len(snapshot.alerts))


def _pending(report: SessionReport | None) -> Iterable[Markup]:
    if report is not None and report.pending:
        heads = ("what", "state", "call", "attempt", "since", "can still cost", "what finishes it")
        yield table(heads, map(_pending_row, report.pending))


def _pending_row(each: Pending) -> tuple[str, ...]:
    attempt = f"{each.attempt} of {each.attempts}" if each.attempts else MISSING
    return (
        each.name, each.state, each.call or MISSING, attempt, moment(each.since), money(each.usd),
        tag("code", each.command),
    )  # fmt: skip


def _incidents(report: SessionReport | None) -> Iterable[Markup]:
    if report is not None and report.incidents:
        yield table(
            ("first", "last", "severity", "kind", "subject", "what", "times"),
            [
                (moment(each.first), moment(each.last), each.severity, each.kind, each.subject, each.text,
                 str(each.times))
                for each in report.incidents[:SHOWN]
            ],
        )  # fmt: skip
        yield from _more(len(report.incidents))


def _more(count: int) -> Iterable[Markup]:
    if count > SHOWN:
        yield tag("p", f"and {count - SHOWN} more.")


def _steps(report: SessionReport | None) -> Iterable[Markup]:
    if report is not None and report.next_steps:
        yield tag(
            "ol",
            *(
                tag("li", f"{step.what} ", tag("code", step.command), f" Evidence: {step.evidence}.")
                for step in report.next_steps
            ),
        )


def _findings(snapshot: Snapshot, report: SessionReport | None) -> Iterable[Markup]:
    found = [f"{finding.path}: {finding.reason}" for finding in snapshot.findings]
    found += report.findings if report is not None else ()
    if found:
        yield tag("ul", *(tag("li", each) for each in dict.fromkeys(found)))
