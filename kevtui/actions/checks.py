"""Checks of a spec that several actions make, as the engine makes them."""

from typing import Final

from kev.rounds.guards import confirmation_problems
from kev.rounds.problems import Severity
from kev.rounds.specs import LoadedSpec
from kev.rounds.validate import Validation, validate
from kevtui.actions.proposal import Check
from kevtui.actions.truth import guarded

SHOWN: Final = 3
"""Problems of a spec, or names, that a check tells."""

MONEY: Final = "the money is known"


def registered_checks(loaded: LoadedSpec) -> list[Check]:
    """Whether a spec may be launched or watched, as the engine asks it."""

    def look() -> list[Check]:
        result: Validation = validate(loaded.path, loaded.root)
        problems = result.of(Severity.PROBLEM)
        named = "; ".join(str(problem) for problem in problems[:SHOWN])
        more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        recorded = loaded.spec.archive
        return [
            Check("the spec has no problem", not problems, named + more),
            Check("it is registered", result.registration is not None,
                  "" if result.registration else "commit the spec with its section in the plan document"),
            *([Check("it is no recorded round", False, f"recorded in {recorded}")] if recorded else []),
        ]  # fmt: skip

    return guarded("the spec can be checked", look)


def stage_checks(loaded: LoadedSpec, stage: str, arm: str) -> list[Check]:
    """Whether a stage may be read or decided, one check that lists every rule that forbids it."""

    def look() -> list[Check]:
        problems = confirmation_problems(loaded.spec, loaded.root, stage, arm)
        if not problems:
            return [Check(f"stage {stage} may be decided for {arm}", True)]
        return [Check(f"stage {stage} may be decided for {arm}", False, problem) for problem in problems]

    return guarded(f"stage {stage} may be decided for {arm}", look)
