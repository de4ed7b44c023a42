"""`python -m kev.rounds launch-reads`: the rows that arms still need, or those of one confirmation stage.

A stage's reads are of tests: they are launched for the candidate alone, after everything that `confirm` asks for, and
never a second time.
"""

import argparse

from kev import files
from kev.errors import Refused, UsageError
from kev.rounds.deployed import check_deployed
from kev.rounds.engine import STAGGER_S, Engine, add_session_arguments, app_of, run_engine
from kev.rounds.guards import candidate_of, confirmation_problems
from kev.rounds.launch import check_launchable, launch_orders, preview, report
from kev.rounds.read_orders import arm_reads, has_landed
from kev.rounds.specs import LoadedSpec
from kev.rounds.trial_orders import Wanted
from kev.worker.sources import source_hashes


def missing_reads(engine: Engine, loaded: LoadedSpec, arms: list[str], *, parents: bool = False,
                  stage: str | None = None) -> list[Wanted]:  # fmt: skip
    """The reads of `arms` whose rows are not here. Raises Refused or UsageError."""
    wanted: dict[str, Wanted] = {}
    for arm in arms:
        for unit_id, order in arm_reads(
            loaded.spec, loaded.root, arm, engine.provenance, stage=stage, parents=parents or stage is not None
        ):
            place = f"{order.local}/decision" if order.kind == "locked" else order.local
            if not has_landed(loaded.root, place):
                wanted.setdefault(unit_id, (unit_id, order))
    return list(wanted.values())


def readable_arms(loaded: LoadedSpec, names: str | None) -> list[str]:
    """The arms of `--arms`, or every one whose checkpoint is finished. Raises UsageError."""
    spec = loaded.spec
    if names is not None:
        chosen = [name.strip() for name in names.split(",") if name.strip()]
        unknown = [name for name in chosen if name not in spec.arms]
        if unknown:
            raise UsageError(f"round {spec.round} has no arm {unknown[0]!r}; it has {', '.join(spec.arms)}")
        return chosen
    return [
        name
        for name, arm in spec.arms.items()
        if arm.trial is None or "result.json" in files.list_names(loaded.root / arm.trial)
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `launch-reads`."""
    add_session_arguments(parser)
    parser.add_argument("--stagger", type=float, default=STAGGER_S, metavar="S", help="seconds between reads (60)")
    parser.add_argument("--arms", metavar="A,B", help="only these arms")
    parser.add_argument("--parents", action="store_true", help="the parents' rows too")
    parser.add_argument("--stage", metavar="NAME", help="the reads of a confirmation stage, for the candidate")
    parser.add_argument("--arm", metavar="NAME", help="the candidate, where the read-out names several")
    parser.add_argument("--dry-run", action="store_true", help="say what would be read, and launch nothing")


def launch_reads_command(arguments: argparse.Namespace) -> int:
    """0 if everything runs; 1 if it is not known of some read whether it does."""
    if arguments.stage is not None and arguments.arms is not None:
        raise UsageError("--arms: a stage is read for one arm; name it with --arm")
    if arguments.stage is None and arguments.arm is not None:
        raise UsageError("--arm: belongs to --stage; without one write --arms")

    async def work(engine: Engine, loaded: LoadedSpec) -> int:
        spec = loaded.spec
        if arguments.stage is None:
            warnings = check_launchable(loaded)
            arms = readable_arms(loaded, arguments.arms)
        else:
            arm = arguments.arm or candidate_of(spec, loaded.root)
            problems = confirmation_problems(spec, loaded.root, arguments.stage, arm)
            if problems:
                raise Refused(f"round {spec.round}, stage {arguments.stage}: " + "; ".join(problems))
            warnings, arms = check_launchable(loaded), [arm]
        wanted = missing_reads(engine, loaded, arms, parents=arguments.parents, stage=arguments.stage)
        if arguments.dry_run:
            preview(engine, wanted, arguments.json, warnings)
            return 0
        if any(unit_id not in engine.ledger.read().by_id for unit_id, _ in wanted):
            await check_deployed(engine.gate, app_of(loaded), source_hashes(loaded.root))
        what = f"round {spec.round}, reads of {', '.join(arms) or 'no arm'}"
        done = await launch_orders(engine, wanted, what, arguments.stagger)
        report(done, arguments.json)
        return 1 if done.unknown else 0

    return run_engine(arguments, work)
