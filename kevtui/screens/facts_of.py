"""Everything known of a row of Reads, Read-out or Attention, as (heading, facts) for the details."""

from kevtui import format as shown
from kevtui.observe.snapshot import Alert, Arm, Criterion, Finding, ReadCell, Snapshot
from kevtui.screens.details import Facts

Sections = list[tuple[str, Facts]]


def of_row(snapshot: Snapshot, panel: str, key: str) -> Sections:
    """What is known of the row called `key` of the panel with id `panel`; [] where that is nothing."""
    match panel:
        case "reads":
            return _reads(snapshot, key)
        case "readout":
            return _readout(snapshot, key)
        case "attention":
            return _attention(snapshot, key)
    return []


def _reads(snapshot: Snapshot, owner: str) -> Sections:
    cells = [cell for cell in snapshot.reads.cells if cell.owner == owner]
    return [(f"{owner}: {cell.tag}", _of_read(cell)) for cell in cells]


def _of_read(cell: ReadCell) -> Facts:
    facts = [("state", str(cell.state)), ("directory", cell.directory or shown.MISSING)]
    if cell.age_s is not None:
        facts.append(("launched", f"{shown.age(cell.age_s)} ago"))
    if cell.progress is not None:
        facts.append(("evaluated", "{:,} of {:,}".format(*cell.progress)))
    return [*facts, ("reason", cell.detail)] if cell.detail else facts


def _readout(snapshot: Snapshot, key: str) -> Sections:
    readout = snapshot.readout
    for arm in readout.arms if readout else ():
        source = (readout.source if readout else "") or "nothing has been read out yet"
        if key in (f"arm {arm.name}", f"missing {arm.name}"):
            return [(f"arm {arm.name}", _of_arm(arm, source)), *((item.name, _figures(item)) for item in arm.criteria)]
        for item in arm.criteria:
            if key == f"{arm.name} {item.name}":
                return [(item.name, [("arm", arm.name), *_figures(item), ("from", source)])]
    return []


def _of_arm(arm: Arm, source: str) -> Facts:
    verdict = {True: "passed", False: "not passed", None: "no verdict"}[arm.passed]
    candidate, parent = arm.unknowable or (None, None)
    return [
        ("verdict", f"{verdict}, {'complete' if arm.complete else 'incomplete'}"),
        ("selectable", "yes" if arm.selectable else "no: reported, never a candidate"),
        ("parent", arm.parent or shown.MISSING),
        ("trial", arm.trial or shown.MISSING),
        ("checkpoint", arm.checkpoint or shown.MISSING),
        ("temperature", f"{_number(arm.temperature)} {_interval(arm.temperature_low, arm.temperature_high)}"),
        ("fitted on", (arm.temperature_source or shown.MISSING) + (", in distribution" if arm.in_distribution else "")),
        ("parent's temperature", _number(arm.parent_temperature)),
        ("unknowable, sure", f"{shown.percent(candidate)}, parent {shown.percent(parent)}"),
        ("missing", ", ".join(arm.missing) or "nothing"),
        ("missing, optional", ", ".join(arm.missing_optional) or "nothing"),
        ("from", source),
    ]


def _figures(item: Criterion) -> Facts:
    return [
        ("verdict", f"{item.verdict}, {item.kind}"),
        ("compares", f"{item.left} {item.op} {item.right}".strip() or shown.MISSING),
        ("value", f"{_number(item.value)}, needs {item.op} {_number(item.threshold)}"),
        ("candidate", _number(item.candidate)),
        ("parent", _number(item.parent)),
        ("delta", shown.MISSING if item.delta is None else f"{item.delta:+.6f}"),
        ("interval", _interval(item.lower, item.upper)),
    ]


def _attention(snapshot: Snapshot, key: str) -> Sections:
    for alert in snapshot.alerts:
        if key == f"alert {alert.id}":
            return [(alert.subject or alert.code, _of_alert(alert))]
    for finding in snapshot.findings:
        if key == f"finding {finding.path}":
            return [(finding.path, _of_finding(finding))]
    return []


def _of_alert(alert: Alert) -> Facts:
    return [("severity", str(alert.severity)), ("kind", alert.code), ("what", alert.text), ("id", alert.id)]


def _of_finding(finding: Finding) -> Facts:
    return [
        ("what", "a file that cannot be believed; what it last held stays in use"),
        ("reason", finding.reason),
        (
            "last good",
            shown.MISSING if finding.last_good_age_s is None else f"{shown.age(finding.last_good_age_s)} ago",
        ),
    ]


def _number(value: float | None) -> str:
    return shown.MISSING if value is None else f"{value:.6f}"


def _interval(low: float | None, high: float | None) -> str:
    return shown.MISSING if low is None and high is None else f"[{_number(low)}, {_number(high)}]"
