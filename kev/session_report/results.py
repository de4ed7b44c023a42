"""What came out of a round, each figure with what it was measured on. Pure."""

from collections.abc import Iterable
from typing import Any

from kev.records.readout import Comparison
from kev.records.spec import Panel as PanelSpec
from kev.records.spec import RoundSpec, Stage
from kev.rounds.checks.reads import read_split
from kev.rounds.once import checkpoint_of
from kev.rounds.sides import TRANSFER, Side, candidate_side
from kev.session_report.records import RoundRecords
from kev.session_report.structure import ArmResult, Figure, PanelResult, ReadPart, RoundResult, VerdictResult


def round_result(records: RoundRecords) -> RoundResult:
    """The result of a round, as far as there is one."""
    spec, readout = records.spec, records.readout
    arms = readout.arms if readout is not None else {}
    return RoundResult(
        round=spec.round,
        spec=records.path,
        registered_at=records.registered_at,
        arms_tried=len(spec.arms),
        arms_read=sum(comparison.complete is True for comparison in arms.values()),
        readout=records.readout_path if readout is not None else None,
        candidates=dict(readout.candidates) if readout is not None else {},
        arms=tuple(arm_result(spec, name, comparison) for name, comparison in arms.items()),
        verdicts=tuple(
            VerdictResult(
                verdict.stage, verdict.arm, verdict.passed, path,
                arm_result(spec, verdict.arm or "", verdict, spec.confirm.get(verdict.stage)),
            )
            for path, verdict in records.verdicts
        ),
    )  # fmt: skip


def arm_result(spec: RoundSpec, name: str, comparison: Comparison, stage: Stage | None = None) -> ArmResult:
    """One arm as the read-out has it, or at `stage` as a verdict has it."""
    arm = spec.arms.get(name)
    parent = spec.parents.get(arm.parent) if arm is not None else None
    side = candidate_side(spec, name, stage) if arm is not None else None
    registered = (spec.rule if stage is None else stage).panels
    return ArmResult(
        arm=name,
        checkpoint=checkpoint_of(comparison.trial, comparison.checkpoint or (arm.checkpoint if arm else None)),
        parent=arm.parent if arm is not None else comparison.parent,
        parent_checkpoint=checkpoint_of(comparison.parent, parent.checkpoint if parent is not None else None),
        temperature=_number(comparison.temperature),
        temperature_source=describe_source(comparison.temperature_source),
        parent_temperature=_number(comparison.parent_temperature),
        complete=comparison.complete,
        passed=comparison.passed,
        criteria=dict(comparison.criteria),
        missing=tuple(comparison.missing),
        panels=tuple(
            PanelResult(
                panel_name, panel.n, tuple(_reads(spec, registered.get(panel_name), side)),
                tuple(
                    Figure(
                        metric, value.side("candidate"), value.side("parent"), value.side("delta"),
                        value.side("lower"), value.side("upper"), value.n if value.n is not None else panel.n,
                    )
                    for metric, value in panel.metrics().items()
                ),
            )
            for panel_name, panel in comparison.panels.items()
        ),
    )  # fmt: skip


def describe_source(source: dict[str, Any] | None) -> str:
    """What a temperature was fitted on, in words; empty where the read-out does not say."""
    if source is None:
        return ""
    reads = source.get("reads") or source.get("rows")
    where = ", ".join(map(str, reads)) if isinstance(reads, list) else str(reads or "")
    questions = source.get("questions")
    count = f", {questions} questions" if isinstance(questions, int) else ""
    return f"{source.get('kind') or 'unknown'}{f' ({where}{count})' if where or count else ''}"


def _reads(spec: RoundSpec, panel: PanelSpec | None, side: Side | None) -> Iterable[ReadPart]:
    for tag in panel.reads if panel is not None else ():
        directory = side.directory(tag) if side is not None else None
        if tag == TRANSFER and (side is None or side.transfer_read is None):
            yield ReadPart(tag, _transfer_suite(spec, side), "development", _report(directory))
            continue
        actual = (side.transfer_read or tag) if tag == TRANSFER and side is not None else tag
        read = spec.reads.get(actual)
        suite = (read.suite or read.decision) if read is not None else None
        yield ReadPart(tag, suite, read_split(read) if read is not None else None, _report(directory))


def _transfer_suite(spec: RoundSpec, side: Side | None) -> str | None:
    """The suite of the read inside a trial: that of the study it belongs to."""
    study = (side.trial or "").split("/")[1:2] if side is not None else []
    return spec.studies[study[0]].transfer if study and study[0] in spec.studies else None


def _report(directory: str | None) -> str | None:
    return None if directory is None else f"{directory}/report.json"


def _number(value: int | float | None) -> float | None:
    return None if value is None else float(value)
