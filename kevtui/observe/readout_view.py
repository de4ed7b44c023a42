"""The read-out beside what the spec registered: every criterion with its operands, missing ones included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kevtui.observe.snapshot import Arm, Criterion, Readout, StageVerdict, Verdict

if TYPE_CHECKING:
    from kev.records.readout import Comparison, ReadOut
    from kev.records.spec import Arm as SpecArm
    from kev.records.spec import Criterion as SpecCriterion
    from kev.records.spec import RoundSpec
    from kev.records.verdict import Verdict as StageRecord

_KINDS = {"1": "primary", "2": "guard", "3": "calibration"}


def view_readout(
    spec: RoundSpec | None, readout: ReadOut | None, *, source: str = "", age_s: float | None = None
) -> Readout | None:
    """Arms of the spec first, in its order, then any that only the read-out has. None where neither is known."""
    if spec is None and readout is None:
        return None
    registered = spec.arms if spec else {}
    compared = readout.arms if readout else {}
    names = [*registered, *(name for name in compared if name not in registered)]
    rule = spec.rule.criteria if spec else {}
    arms = tuple(_arm(name, registered.get(name), compared.get(name), rule) for name in names)
    return Readout(
        round=spec.round if spec else readout.round if readout else None,
        registered=(spec.registered if spec else readout.registered if readout else None) or "",
        source=source,
        age_s=age_s,
        arms=arms,
        candidates=_candidates(names, readout),
    )


def view_verdict(size: str, verdict: StageRecord, spec: RoundSpec | None, *, source: str) -> StageVerdict:
    """One confirmation stage, joined with the stage's criteria where the spec has them."""
    stage = spec.confirm.get(verdict.stage) if spec else None
    joined = _criteria(stage.criteria if stage else {}, verdict)
    return StageVerdict(size=size, stage=verdict.stage, passed=verdict.passed, source=source, criteria=joined)


def absent_verdicts(spec: RoundSpec, readout: ReadOut | None, present: set[tuple[str, str]]) -> list[StageVerdict]:
    """The registered stages without a verdict, for each size that has a candidate."""
    sizes = [size for size, arm in (readout.candidates if readout else {}).items() if arm is not None]
    return [
        StageVerdict(size=size, stage=stage) for size in sizes for stage in spec.confirm if (size, stage) not in present
    ]


def _arm(name: str, registered: SpecArm | None, compared: Comparison | None, rule: Mapping[str, SpecCriterion]) -> Arm:
    from kev.records.spec import size_of

    selectable = registered.select if registered else True
    trial = _first(compared.trial if compared else None, registered.trial if registered else None)
    checkpoint = _first(compared.checkpoint if compared else None, registered.checkpoint if registered else None)
    parent = _first(compared.parent if compared else None, registered.parent if registered else None) or ""
    if compared is None:
        return Arm(name=name, size=size_of(name), selectable=selectable, note="not read yet", parent=parent,
                   trial=trial, checkpoint=checkpoint, criteria=_criteria(rule, None))  # fmt: skip
    interval = compared.temperature_ci
    shares = compared.unknowable
    joined = _criteria(rule, compared)
    return Arm(
        name=name,
        size=size_of(name),
        passed=compared.passed,
        complete=bool(compared.complete),
        selectable=selectable,
        note=_note(compared, joined),
        parent=parent,
        trial=trial,
        checkpoint=checkpoint,
        temperature=_number(compared.temperature),
        temperature_low=_number(interval.lower) if interval else None,
        temperature_high=_number(interval.upper) if interval else None,
        temperature_source=_source(compared.temperature_source),
        parent_temperature=_number(compared.parent_temperature),
        in_distribution=bool((compared.temperature_source or {}).get("training_corpus")),
        unknowable=(_number(shares.candidate), _number(shares.parent)) if shares else None,
        criteria=joined,
        missing=tuple(compared.missing),
        missing_optional=tuple(compared.missing_optional),
    )


def _note(compared: Comparison, joined: tuple[Criterion, ...]) -> str:
    if not compared.panels and compared.missing:
        return "not read yet"
    return "" if joined else "no criteria registered"


def _criteria(registered: Mapping[str, SpecCriterion], compared: Comparison | None) -> tuple[Criterion, ...]:
    verdicts = compared.criteria if compared else {}
    names = [*registered, *(name for name in verdicts if name not in registered)]
    return tuple(_criterion(name, registered.get(name), compared) for name in names)


def _criterion(name: str, registered: SpecCriterion | None, compared: Comparison | None) -> Criterion:
    kind = _KINDS.get(name.partition("_")[0], "other")
    verdict = _verdict(compared.criteria.get(name) if compared else None)
    if registered is None:
        return Criterion(name=name, kind=kind, verdict=verdict)
    paths = [registered.left] if isinstance(registered.left, str) else registered.left
    left, right = " − ".join(paths), str(registered.right)
    if registered.plus:
        sign = "−" if registered.plus < 0 else "+"
        right = f"{right} {sign} {abs(registered.plus)}"
    if compared is None:
        threshold = _number(registered.right) if not isinstance(registered.right, str) else None
        plus = float(registered.plus or 0)
        return Criterion(name, kind, verdict, left, registered.op, right,
                         threshold=None if threshold is None else threshold + plus)  # fmt: skip
    from kev.errors import UsageError
    from kev.rounds import criteria

    comparison = compared.to_json()
    try:
        outcome = criteria.evaluate(registered.to_json(), comparison)
        measured = criteria.parse_path(paths[0])
    except UsageError:
        # A criterion that cannot be meant is for `validate` to explain; here its operands are missing.
        return Criterion(name, kind, verdict, left, registered.op, right)

    def figure(field: str) -> float | None:
        # The whole metric stands beside the operand, whichever of its figures the criterion is about.
        return criteria.lookup(comparison, replace(measured, field=field))

    return Criterion(
        name=name,
        kind=kind,
        verdict=verdict,
        left=left,
        op=registered.op,
        right=right,
        value=outcome.left,
        threshold=outcome.right,
        candidate=figure("candidate"),
        parent=figure("parent"),
        delta=figure("delta"),
        lower=figure("lower"),
        upper=figure("upper"),
    )


def _verdict(value: bool | None) -> Verdict:
    return Verdict.MISSING if value is None else Verdict.PASS if value else Verdict.FAIL


def _candidates(names: list[str], readout: ReadOut | None) -> tuple[tuple[str, str | None], ...]:
    from kev.records.spec import size_of

    chosen = readout.candidates if readout else {}
    sizes = dict.fromkeys([*chosen, *(size_of(name) for name in names)])
    return tuple((size, chosen.get(size)) for size in sizes)


def _source(source: dict[str, Any] | None) -> str:
    """Where the temperature was fitted, in words: "pool of 2 reads, 648 questions"."""
    if not source:
        return ""
    kind = str(source.get("kind", ""))
    reads = source.get("reads")
    text = f"{kind} of {_counted(len(reads), 'read')}" if kind == "pool" and isinstance(reads, list) else kind
    questions = source.get("questions")
    return f"{text}, {_counted(questions, 'question')}" if isinstance(questions, int) else text


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value), None)


def _number(value: int | float | None) -> float | None:
    return None if value is None else float(value)
