"""What must hold before a confirmation stage is read, and again before it is decided.

Free of numpy: the dashboard asks the same questions before it offers to launch the reads.
"""

from pathlib import Path

from kev.errors import NotFound, Refused, UsageError
from kev.records.readout import ReadOut, read_readout
from kev.records.spec import RoundSpec, size_of
from kev.records.verdict import read_verdict
from kev.rounds.checks.reads import read_split
from kev.rounds.choice import choice_problem
from kev.rounds.once import checkpoint_of, key_of_read, other_locked_reads, other_reads, planned_key, unreadable_reads
from kev.rounds.places import readout_path, verdict_path
from kev.rounds.sides import Side, candidate_side, parent_side


def confirmation_problems(spec: RoundSpec, root: Path, stage: str, arm: str, *, out: Path | None = None) -> list[str]:
    """Why `stage` may not be read or decided for `arm`, one line each; empty if it may.

    To be asked before the reads are launched and again before the verdict: the arm is the read-out's candidate and
    passed; earlier stages passed; the choice is committed in the plan document; the same checkpoint was not scored
    on the stage's suites and splits under another name; the stage has no verdict yet. Raises UsageError for an arm or
    a stage that the spec does not have, NotFound without a read-out.
    """
    sides_of(spec, arm, stage)
    problems = _choice_problems(arm, _stored_readout(spec, root))
    committed = choice_problem(root, spec, arm)
    problems += [committed] if committed else []
    problems += _earlier_stage_problems(spec, root, stage, arm, out)
    problems += _second_read_problems(spec, root, stage, arm)
    problems += [
        f"{damage}; it may be an earlier read of this test: put it back from where it was read, or move it out of runs/"
        for damage in unreadable_reads(root)
    ]
    # Also where the verdict would be without `out`: elsewhere is no second chance.
    for verdict in dict.fromkeys((verdict_path(spec, root, stage, arm), verdict_path(spec, root, stage, arm, out))):
        if verdict.exists():
            problems.append(f"{verdict} is there already, and a verdict is never replaced")
    return problems


def candidate_of(spec: RoundSpec, root: Path) -> str:
    """The single candidate of the stored read-out. Raises Refused if it names none or several."""
    chosen = [arm for arm in _stored_readout(spec, root).candidates.values() if arm is not None]
    if len(chosen) != 1:
        named = ", ".join(chosen) if chosen else "none"
        raise Refused(f"the read-out of round {spec.round} has {named} as candidate; name the arm with --arm")
    return chosen[0]


def sides_of(spec: RoundSpec, arm: str, stage: str | None = None) -> tuple[Side, Side]:
    """The candidate and the parent of `arm`. Raises UsageError for an arm, parent or stage that the spec lacks."""
    if arm not in spec.arms:
        raise UsageError(f"round {spec.round} has no arm {arm!r}; it has {', '.join(spec.arms)}")
    if spec.arms[arm].parent not in spec.parents:
        raise UsageError(f"arm {arm} names the parent {spec.arms[arm].parent!r}, which the spec does not have")
    if stage is not None and stage not in spec.confirm:
        known = ", ".join(spec.confirm) or "none to confirm"
        raise UsageError(f"round {spec.round} has no stage {stage!r}; it has {known}")
    at = None if stage is None else spec.confirm[stage]
    return candidate_side(spec, arm, at), parent_side(spec, arm, at)


def _stored_readout(spec: RoundSpec, root: Path) -> ReadOut:
    path = readout_path(spec, root)
    try:
        return read_readout(path).readout
    except NotFound:
        raise NotFound(f"{path}: no read-out yet; run `python -m kev.rounds readout` first") from None


def _choice_problems(arm: str, stored: ReadOut) -> list[str]:
    chosen = stored.candidates.get(size_of(arm))
    if chosen != arm:
        return [f"{arm} is not the candidate of the read-out, which has {chosen or 'none'} for {size_of(arm)}"]
    comparison = stored.arms.get(arm)
    if comparison is None or comparison.passed is not True:
        return [f"{arm} did not pass the rule"]
    return []


def _earlier_stage_problems(spec: RoundSpec, root: Path, stage: str, arm: str, out: Path | None) -> list[str]:
    problems = []
    for earlier in spec.confirm:
        if earlier == stage:
            break
        path = verdict_path(spec, root, earlier, arm, out)
        if not path.exists():
            path = verdict_path(spec, root, earlier, arm)
        try:
            verdict = read_verdict(path).verdict
        except NotFound:
            problems.append(f"the earlier stage {earlier} has no verdict")
            continue
        if verdict.arm not in (None, arm):
            problems.append(f"the verdict of the earlier stage {earlier} is about {verdict.arm}")
        elif spec.confirm[earlier].criteria and verdict.passed is not True:
            problems.append(f"the earlier stage {earlier} did not pass")
    return problems


def _second_read_problems(spec: RoundSpec, root: Path, stage: str, arm: str) -> list[str]:
    side = candidate_side(spec, arm, spec.confirm[stage])
    run = checkpoint_of(side.trial, side.checkpoint)
    problems = []
    for tag in dict.fromkeys(tag for panel in spec.confirm[stage].panels.values() for tag in panel.reads):
        directory = side.directory(tag)
        if directory is None or tag not in spec.reads or run is None:
            continue
        made = key_of_read(root, directory)
        if made is not None and made.run != run:
            problems.append(f"{directory} holds answers of {made.run}, and {arm} is {run}")
            continue
        key = made or planned_key(root, spec.reads[tag], run)
        others = other_reads(root, key, directory) if key is not None else []
        if spec.reads[tag].entrypoint == "locked_test":
            others += [name for name in other_locked_reads(root, run, directory) if name not in others]
        if others:
            split = read_split(spec.reads[tag])
            problems.append(f"{arm} was read on the {split} split of {tag} before, as {', '.join(others)}")
    return problems
