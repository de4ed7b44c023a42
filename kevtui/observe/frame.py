"""The slowly changing part of a target: its session, spec, read-out and verdicts, and which studies it has."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from kev.errors import DamagedFile
from kev.session import Session, parse_session, session_of_budget
from kevtui.observe.money_view import Spending, spending
from kevtui.observe.readout_view import absent_verdicts, view_verdict
from kevtui.observe.scope import contexts_of, is_of_round, newest_spec_for, studies_in, unreadable_ledgers
from kevtui.observe.snapshot import StageVerdict
from kevtui.observe.sources import Load, Sources
from kevtui.observe.study_book import StudyContext
from kevtui.observe.target import Target

if TYPE_CHECKING:
    from kev.records.readout import ReadOut
    from kev.records.spec import RoundSpec
    from kev.records.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Frame:
    """What changes only with the files at the top of runs/ and of the specs: read again only when those move."""

    session: Session | None
    spec_path: str | None
    spec: RoundSpec | None
    round: int | None
    names: list[str]
    contexts: dict[str, StudyContext]
    readout: ReadOut | None
    verdicts: tuple[StageVerdict, ...]
    unreadable: int
    spending: Spending
    gateway_spent: Decimal | None
    """What the reads of hosted models cost by their own records, for where no state file says."""
    sample: bool
    """True where the state file or the spec says that it is made up; simulated money alone does not say so."""


def read_frame(target: Target, sources: Sources) -> Frame:
    """Everything of it that the files say at present."""
    session = _read_session(target, sources)
    spec_path, spec = _read_spec(target, sources, session)
    if session is None and spec is not None and target.state is None:
        session = _session_of_spec(spec_path, spec)
    names = studies_in(target, sources, spec, session)
    number = target.round if target.round is not None else spec.round if spec else None
    record = _read_readout(sources, number)
    # A state file that cannot be read hides studies as a ledger does.
    hidden = target.state is not None and session is None
    return Frame(
        session=session,
        spec_path=spec_path,
        spec=spec,
        round=number,
        names=names,
        contexts=contexts_of(names, spec, session, record),
        readout=record,
        verdicts=_view_verdicts(sources, number, spec, record),
        unreadable=unreadable_ledgers(target, sources, names, session) + hidden,
        spending=spending(session),
        gateway_spent=sources.gateway_spent(lambda name: number is None or is_of_round(number, name)),
        sample=bool((session and session.sample) or (spec and (spec.model_extra or {}).get("sample") is True)),
    )


def _read_session(target: Target, sources: Sources) -> Session | None:
    if target.state is None:
        return None
    session: Session | None = sources.value(str(target.state), _parse_session)
    return session


def _read_spec(target: Target, sources: Sources, session: Session | None) -> tuple[str | None, RoundSpec | None]:
    if target.spec is not None:
        path = str(target.spec)
    elif session is not None:
        newest = newest_spec_for({work.name for work in session.studies}, sources)
        if newest is None:
            return None, None
        path = newest
    else:
        return None, None
    return path, sources.spec(path)


def _session_of_spec(path: str | None, spec: RoundSpec) -> Session | None:
    if path is None or spec.budget is None or spec.budget.hard_cap is None:
        return None
    try:
        return session_of_budget(
            Path(path),
            f"r{spec.round}",
            {key: value for key, value in spec.budget if key in spec.budget.model_fields_set},
        )
    except DamagedFile:
        return None


def readout_path(sources: Sources, number: int) -> str:
    return f"{sources.runs}/r{number}-readout/round{number}.json"


def _read_readout(sources: Sources, number: int | None) -> ReadOut | None:
    if number is None:
        return None
    record: ReadOut | None = sources.value(readout_path(sources, number), _parse_readout)
    return record


def _view_verdicts(
    sources: Sources, number: int | None, spec: RoundSpec | None, readout: ReadOut | None
) -> tuple[StageVerdict, ...]:
    if number is None:
        return ()
    folder = f"{sources.runs}/r{number}-verdict"
    found = []
    for name in sources.lister.files(folder):
        verdict: Verdict | None = sources.value(f"{folder}/{name}", _parse_verdict)
        if verdict is not None:
            size = name.removesuffix(".json").removesuffix(f"-{verdict.stage}")
            found.append(view_verdict(size, verdict, spec, source=sources.shown(f"{folder}/{name}")))
    if spec is not None:
        found += absent_verdicts(spec, readout, {(verdict.size, verdict.stage) for verdict in found})
        order = {stage: position for position, stage in enumerate(spec.confirm)}
        found.sort(key=lambda verdict: (verdict.size, order.get(verdict.stage, len(order))))
    return tuple(found)


def _parse_session(path: Path, load: Load) -> Session:
    return parse_session(path, load(path))


def _parse_readout(path: Path, load: Load) -> ReadOut:
    from kev.records.readout import parse_readout

    return parse_readout(path, load(path)).readout


def _parse_verdict(path: Path, load: Load) -> Verdict:
    from kev.records.verdict import parse_verdict

    return parse_verdict(path, load(path)).verdict
