"""What is worth doing next: at most three things, each with the command that does it and what speaks for it. Pure."""

from collections.abc import Iterable, Sequence
from itertools import islice

from kev.meter import describe_gap, is_alarming
from kev.records.spec import size_of
from kev.session_report.records import Records, RoundRecords
from kev.session_report.structure import NextStep, Pending

MOST = 3


def next_steps(records: Records, pending: Sequence[Pending]) -> tuple[NextStep, ...]:
    """The first three of what the records speak for, the most pressing first."""
    return tuple(islice(_steps(records, pending), MOST))


def _steps(records: Records, pending: Sequence[Pending]) -> Iterable[NextStep]:
    yield from _money(records)
    yield from _unfinished(pending)
    for each in records.rounds:
        yield from _confirmation(each, records.standing.session.name)
    for each in records.rounds:
        yield from _incomplete(each, records.standing.session.name)
    if not pending and records.standing.session.closed_at is None and records.rounds:
        name = records.standing.session.name
        yield NextStep("Close the session.", f"python -m kev.session close --session {name}",
                       "nothing of it is unsettled")  # fmt: skip


def _money(records: Records) -> Iterable[NextStep]:
    reading = records.standing.reading
    if reading is not None and is_alarming(reading.metered, reading.billed):
        yield NextStep(
            "Find out what costs money beside the meter before anything else is launched.",
            "modal billing report --for today -r h --json", describe_gap(reading.metered, reading.billed),
        )  # fmt: skip


def _unfinished(pending: Sequence[Pending]) -> Iterable[NextStep]:
    by_command: dict[str, list[Pending]] = {}
    for each in pending:
        by_command.setdefault(each.command, []).append(each)
    for command, works in by_command.items():
        names = ", ".join(f"{each.name} ({each.state})" for each in works[:3])
        more = f" and {len(works) - 3} more" if len(works) > 3 else ""
        yield NextStep("See what is pending through to its end.", command, f"{names}{more}")


def _confirmation(records: RoundRecords, session: str) -> Iterable[NextStep]:
    """The first stage of each candidate that has no verdict, if those before it passed."""
    readout = records.readout
    chosen = [arm for arm in (readout.candidates.values() if readout is not None else ()) if arm is not None]
    for arm in chosen:
        decided = {verdict.stage: verdict for _, verdict in records.verdicts if verdict.arm in (None, arm)}
        for stage, spec in records.spec.confirm.items():
            verdict = decided.get(stage)
            if verdict is None:
                yield NextStep(
                    f"Confirm {arm} at the stage {stage}: write `Candidate: {arm}` into the section of the round and "
                    "commit it, read the stage, then decide it.",
                    " && ".join(confirmation_commands(records.path, stage, arm, session)),
                    _evidence(records, arm),
                )
                break
            if spec.criteria and verdict.passed is not True:
                break


def confirmation_commands(spec: str, stage: str, arm: str, session: str | None) -> tuple[str, str]:
    """What reads a stage and what decides it; nobody but a person runs them."""
    paid = f" --session {session}" if session else ""
    return (
        f"python -m kev.rounds launch-reads {spec} --stage {stage} --arm {arm}{paid}",
        f"python -m kev.rounds confirm {spec} --stage {stage} --arm {arm}",
    )


def _evidence(records: RoundRecords, arm: str) -> str:
    readout = records.readout
    comparison = readout.arms.get(arm) if readout is not None else None
    if comparison is None:
        return f"{records.readout_path} names it"
    met = sum(value is True for value in comparison.criteria.values())
    tried = sum(size_of(name) == size_of(arm) for name in records.spec.arms)
    return (f"{records.readout_path}: {met} of {len(comparison.criteria)} criteria hold, "
            f"chosen among {tried} arms of its size")  # fmt: skip


def _incomplete(records: RoundRecords, session: str) -> Iterable[NextStep]:
    if records.readout is None:
        return
    for name, comparison in records.readout.arms.items():
        if comparison.complete is not True:
            missing = ", ".join(comparison.missing[:3]) or "it does not say what is missing"
            yield NextStep(
                f"Read what {name} still lacks, then write the read-out again.",
                f"python -m kev.rounds launch-reads {records.path} --arms {name} --parents --session {session}",
                f"{records.readout_path}: {missing}",
            )
