"""The results part of `--once`: reads, the read-out by arm and criterion, verdicts of the confirmation stages."""

from collections.abc import Iterator

from kevtui import format as figures
from kevtui.headless.paint import Paint, Row
from kevtui.headless.styled import Text
from kevtui.observe.snapshot import Arm, Criterion, ReadCell, Readout, Reads, ReadState, StageVerdict, Verdict

CRITERION_COLUMNS = (
    "criterion", "kind", "verdict", ">value", "needs", ">candidate", ">parent", ">delta", "interval", "compares",
)  # fmt: skip


def reads(reads: Reads, paint: Paint) -> Iterator[Text]:
    """A line per owner and state rather than a matrix: fifteen tags in words fit no terminal."""
    rows: list[Row] = []
    for owner in dict.fromkeys([*reads.owners, *(cell.owner for cell in reads.cells)]):
        cells = [cell for cell in reads.cells if cell.owner == owner]
        for state in ReadState:
            of_state = [cell for cell in cells if cell.state is state]
            if of_state:
                tags = ", ".join(_read(cell) for cell in of_state)
                rows.append((owner, paint.state(state), str(len(of_state)), tags))
        if not cells:
            rows.append((owner, paint.text(figures.MISSING), "0", "no read is registered"))
    if not rows:
        return paint.section("Reads", paint.lines(["none known"], "dim"))
    return paint.section("Reads", paint.table(("arm or parent", "state", ">reads", "tags"), rows))


def _read(cell: ReadCell) -> str:
    said = [
        figures.age(cell.age_s) if cell.age_s is not None else "",
        "{} of {}".format(*cell.progress) if cell.progress else "",
        cell.detail,
    ]
    words = ", ".join(part for part in said if part)
    return f"{cell.tag} ({words})" if words else cell.tag


def readout(readout: Readout | None, paint: Paint) -> Iterator[Text]:
    """Every arm with every criterion, then the candidate of each size."""
    if readout is None:
        return paint.section("Read-out", paint.lines(["none: no round is known"], "dim"))
    parts = [_arm(arm, paint) for arm in readout.arms]
    if not readout.arms:
        parts.append(paint.lines(["no arm is registered"], "dim"))
    parts.append(paint.lines(f"candidate {size}: {arm or 'none'}" for size, arm in readout.candidates))
    number = "" if readout.round is None else f" · round {readout.round}"
    source = readout.source or "nothing has been read out yet"
    note = source if readout.age_s is None else f"{source}, {figures.age(readout.age_s)} old"
    return paint.section(f"Read-out{number}", *parts, note=note)


def _arm(arm: Arm, paint: Paint) -> Iterator[Text]:
    verdict = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.MISSING}[arm.passed]
    words = {True: "passed", False: "not passed", None: "no verdict"}[arm.passed]
    said = [
        f"parent {arm.parent}" if arm.parent else "",
        "complete" if arm.complete else "incomplete",
        "" if arm.selectable else "attribution arm: never a candidate",
        arm.note,
    ]
    note = paint.text("   " + ", ".join(part for part in said if part), "dim")
    head = Text.of(paint.state(verdict, f"arm {arm.name}: {words}"), note)
    yield head
    yield from paint.lines(_sources(arm), "dim")
    if arm.criteria:
        yield from paint.table(CRITERION_COLUMNS, [_criterion(criterion, paint) for criterion in arm.criteria])
    yield from paint.lines((f"missing {what}" for what in arm.missing), "yellow")
    yield from paint.lines((f"missing, optional {what}" for what in arm.missing_optional), "dim")


def _sources(arm: Arm) -> list[str]:
    lines = [f"{name} {words}" for name, words in (("trial", arm.trial), ("checkpoint", arm.checkpoint)) if words]
    fit = f"temperature {_figure(arm.temperature)}{_interval(arm.temperature_low, arm.temperature_high)}"
    if arm.temperature_source:
        fit += f" from {arm.temperature_source}"
    if arm.in_distribution:
        fit += "  !!! fitted on rows of a training corpus"
    lines.append(f"{fit}; parent {_figure(arm.parent_temperature)}")
    if arm.unknowable is not None:
        candidate, parent = arm.unknowable
        lines.append(f"unknowable answered surely: {figures.percent(candidate)}, parent {figures.percent(parent)}")
    return lines


def _criterion(criterion: Criterion, paint: Paint) -> Row:
    return (
        criterion.name,
        criterion.kind,
        paint.state(criterion.verdict),
        _figure(criterion.value),
        f"{criterion.op} {_figure(criterion.threshold)}",
        _figure(criterion.candidate),
        _figure(criterion.parent),
        figures.MISSING if criterion.delta is None else f"{criterion.delta:+.4f}",
        _interval(criterion.lower, criterion.upper).strip() or figures.MISSING,
        f"{criterion.left} {criterion.op} {criterion.right}".strip(),
    )


def verdicts(verdicts: tuple[StageVerdict, ...], paint: Paint) -> Iterator[Text]:
    """One row per confirmation stage, with its criteria below."""
    if not verdicts:
        return paint.section("Verdicts", paint.lines(["none: no confirmation stage is known"], "dim"))
    parts: list[Iterator[Text]] = []
    for verdict in verdicts:
        state = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.MISSING}[verdict.passed]
        parts.append(
            paint.table(
                ("size", "stage", "verdict", "from"),
                [(verdict.size, verdict.stage, paint.state(state), verdict.source or "no verdict file yet")],
            )
        )
        if verdict.criteria:
            parts.append(paint.table(CRITERION_COLUMNS, [_criterion(item, paint) for item in verdict.criteria]))
    return paint.section("Verdicts", *parts)


def _figure(value: float | None) -> str:
    return figures.MISSING if value is None else f"{value:.4f}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    return f" [{_figure(low)}, {_figure(high)}]"
