"""The report as Markdown: kev's own, then what only a Snapshot knows. Pure."""

import re
from collections.abc import Iterable

from kev.session_report import to_markdown as session_markdown
from kev.text import visible
from kevtui.format import MISSING, money
from kevtui.observe.snapshot import Criterion, Snapshot
from kevtui.report.charts import number
from kevtui.report.gather import Material
from kevtui.report.results import OUTCOME, interval
from kevtui.report.tables import moment

_ACTS = re.compile(r"([\\`*\[\]<>|#])")


def to_markdown(material: Material) -> str:
    """The whole report."""
    snapshot = material.snapshot
    parts = [session_markdown(material.report).rstrip()] if material.report is not None else list(_head(material))
    if snapshot.sample:
        parts.insert(1, "**SAMPLE: its files say that they are made up.**")
    rows = [(alert.severity.value, alert.subject, alert.text) for alert in snapshot.alerts]
    parts += ["## Needs attention", _table(("severity", "subject", "what"), rows) if rows else "Nothing."]
    parts += ["## Trials", *_trials(snapshot), "## Criteria", *_criteria(snapshot)]
    if material.report is None:
        parts += _stages(snapshot)
    if snapshot.findings and material.report is None:
        parts += ["## Files that could not be believed"]
        parts += ["\n".join(f"- {safe(each.path)}: {safe(each.reason)}" for each in snapshot.findings)]
    return "\n\n".join(parts) + "\n"


def safe(text: str) -> str:
    """`text` on one line, none of whose characters acts in Markdown or on a terminal."""
    return _ACTS.sub(r"\\\1", visible(text))


def _head(material: Material) -> Iterable[str]:
    snapshot, known = material.snapshot, material.snapshot.money
    word = " (simulated money)" if material.simulated else ""
    yield f"# {safe(snapshot.title)}{word}"
    yield f"As of {moment(snapshot.taken_at)}. {safe(material.why)}"
    unknown = "" if known.committed_complete else " or more"
    rows = [
        ("authorization", money(known.authorization)), ("kept back", money(known.reserve)),
        ("spent", money(known.spent)), ("committed", money(known.committed) + unknown),
        ("headroom", money(known.headroom)),
    ]  # fmt: skip
    yield "## Money"
    yield _table(("what", "simulated US dollars" if material.simulated else "US dollars"), rows)


def _trials(snapshot: Snapshot) -> Iterable[str]:
    rows = []
    for trial in snapshot.trials:
        rate = f"{trial.rate.steps_per_minute:.2f}" if trial.rate else trial.rate_note or MISSING
        steps = MISSING if trial.step is None else f"{trial.step}/{MISSING if trial.steps is None else trial.steps}"
        rows.append((trial.id, trial.state.value, steps, number(trial.loss), rate, trial.error or trial.note))
    yield _table(("trial", "state", "step", "loss", "steps per minute", "remark"), rows) if rows else "None."


def _criteria(snapshot: Snapshot) -> Iterable[str]:
    arms = snapshot.readout.arms if snapshot.readout is not None else ()
    if not arms:
        yield "None."
    for arm in arms:
        yield f"{safe(arm.name)}: {OUTCOME[arm.passed]}{f'; {safe(arm.note)}' if arm.note else ''}"
        yield from _rules(arm.criteria)


def _stages(snapshot: Snapshot) -> Iterable[str]:
    for each in snapshot.verdicts:
        if each.source:
            yield f"Stage {safe(each.stage)}, {safe(each.size)}: {OUTCOME[each.passed]} ({safe(each.source)})."
            yield from _rules(each.criteria)


def _rules(criteria: Iterable[Criterion]) -> Iterable[str]:
    rows = [
        (each.name, each.verdict.value, f"{number(each.value)} {each.op} {number(each.threshold)}",
         number(each.delta), interval(each.lower, each.upper))
        for each in criteria
    ]  # fmt: skip
    if rows:
        yield _table(("criterion", "verdict", "figure and threshold", "difference", "95 % interval"), rows)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *(tuple(safe(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
