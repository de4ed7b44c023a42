"""`python -m kev.rounds launch`: every study of a registered round, once, under the spend rule.

A second launch starts only what is missing. Refused: a recorded round, a spec with any problem, a round that is not
registered, a name that was ever used here, in the ledger or on the volume, an app with other sources, and whatever the
gate refuses.
"""

import argparse
import json
from collections.abc import Collection
from decimal import Decimal
from functools import partial

from kev import files
from kev.budget import dollars
from kev.commitments import SPAWN_SUFFIX, is_on_record
from kev.errors import Refused
from kev.procedure.snapshots import check_snapshots
from kev.procedure.unchanged import changes_since_registration
from kev.rounds.deployed import check_deployed
from kev.rounds.engine import RUNS_VOLUME, STAGGER_S, Engine, add_session_arguments, app_of, run_engine
from kev.rounds.patience import patiently
from kev.rounds.problems import Severity
from kev.rounds.specs import LoadedSpec
from kev.rounds.starting import Started, start_all
from kev.rounds.trial_orders import Wanted, is_same_work, trial_orders
from kev.rounds.validate import validate
from kev.spelling import on_any_disk
from kev.worker.sources import source_hashes

SHOWN = 5
"""Problems that a refusal names."""


def check_launchable(loaded: LoadedSpec) -> list[str]:
    """The warnings of a spec that may be launched or watched. Raises Refused for one that may not."""
    result = validate(loaded.path, loaded.root)
    name = f"round {loaded.spec.round}"
    if loaded.spec.archive is not None:
        raise Refused(f"{name}: is a recorded round ({loaded.spec.archive}); it is read out, never launched")
    problems = result.of(Severity.PROBLEM)
    if problems:
        more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise Refused(f"{name}: {'; '.join(str(problem) for problem in problems[:SHOWN])}{more}")
    if result.registration is None:
        raise Refused(f"{name}: is not registered; commit the spec together with its section in the plan document")
    changed = changes_since_registration(loaded.root, loaded.spec, result.registration.commit)
    if changed:
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        raise Refused(f"{name}: {'; '.join(changed[:SHOWN])}{more}")
    return [str(warning) for warning in result.of(Severity.WARNING)]


async def launch(
    engine: Engine, loaded: LoadedSpec, *, stagger_s: float = STAGGER_S, owner_allows: Collection[str] = ()
) -> Started:
    """Admit and start what is missing of the round's studies. Raises KevError before anything was spawned, or after."""
    for warning in check_launchable(loaded):
        engine.say(f"!!! warning: {warning}")
    check_snapshots(loaded.root, loaded.spec, owner_allows)
    wanted = trial_orders(loaded.spec, loaded.root, engine.provenance)
    await check_names(engine, wanted)
    if not wanted:
        engine.say(f"round {loaded.spec.round}: trains nothing; its reads are launched by watch or launch-reads")
        return Started()
    if any(unit_id not in engine.ledger.read().by_id for unit_id, _ in wanted):
        await check_deployed(engine.gate, app_of(loaded), source_hashes(loaded.root))
    return await launch_orders(engine, wanted, f"round {loaded.spec.round}", stagger_s)


async def launch_orders(engine: Engine, wanted: list[Wanted], what: str, stagger_s: float) -> Started:
    """Reserve all of `wanted` or none, and start what is missing. Raises as `Gate.reserve` and `Gate.start` do."""
    await engine.gate.reserve(what, wanted)
    return await start_all(engine, [unit_id for unit_id, _ in wanted], stagger_s)


async def check_names(engine: Engine, wanted: list[Wanted]) -> None:
    """Raises Refused if a study's name stands for anything else: here, in the ledger, or on the volume.

    Raises DamagedFile if its record is here and cannot be believed.
    """
    known = engine.ledger.read()
    here = {on_any_disk(entry): entry for entry in files.list_names(engine.runs)}
    for unit_id, order in wanted:
        unit = known.by_id.get(unit_id)
        if unit is not None and unit.counted and not is_same_work(unit.order, order):
            raise Refused(f"{unit_id}: was launched as something else; a name is never used again")
    for name in dict.fromkeys(order.name for _, order in wanted):
        if known.of_name(name):
            continue
        if is_on_record(engine.runs, name):
            raise Refused(f"study {name}: runs/{name}{SPAWN_SUFFIX} is there, and the ledger did not start it; "
                          "a name is never used again")  # fmt: skip
        if (taken := here.get(on_any_disk(name))) is not None:
            raise Refused(f"study {name}: runs/{taken} exists; a name is never used again")
        if await patiently(engine.gate, partial(engine.compute.listdir, RUNS_VOLUME, f"/{name}")):
            raise Refused(f"study {name}: the volume {RUNS_VOLUME} has a directory of that name; use another")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `launch`."""
    add_session_arguments(parser)
    parser.add_argument("--stagger", type=float, default=STAGGER_S, metavar="S", help="seconds between studies (60)")
    parser.add_argument("--owner-allows", action="append", default=[], metavar="STUDY",
                        help="the owner's word: this full-weight study keeps no snapshots")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="say what would be launched, and launch nothing")


def launch_command(arguments: argparse.Namespace) -> int:
    """0 if everything runs; 1 if it is not known of some trial whether it does."""

    async def work(engine: Engine, loaded: LoadedSpec) -> int:
        if arguments.dry_run:
            check_snapshots(loaded.root, loaded.spec, arguments.owner_allows)
            return await _dry_run(engine, loaded, arguments.json)
        done = await launch(engine, loaded, stagger_s=arguments.stagger, owner_allows=arguments.owner_allows)
        report(done, arguments.json)
        return 1 if done.unknown else 0

    return run_engine(arguments, work)


def report(done: Started, as_json: bool) -> None:
    """Print what was started."""
    if as_json:
        print(json.dumps(done.to_json(), indent=2))
    else:
        print(f"{len(done.calls)} started, {len(done.already)} were on record, {len(done.unknown)} not known")


async def _dry_run(engine: Engine, loaded: LoadedSpec, as_json: bool) -> int:
    warnings = check_launchable(loaded)
    wanted = trial_orders(loaded.spec, loaded.root, engine.provenance)
    await check_names(engine, wanted)
    preview(engine, wanted, as_json, warnings)
    return 0


def preview(engine: Engine, wanted: list[Wanted], as_json: bool, warnings: list[str]) -> None:
    """Print what would be started and what it may cost; nothing is written."""
    known = engine.ledger.read().by_id
    missing = [(unit_id, order) for unit_id, order in wanted if unit_id not in known or not known[unit_id].counted]
    bound = sum((order.attempt_usd * order.attempts for _, order in missing), Decimal(0))
    if as_json:
        rows = [{"unit": unit_id, "gpu": order.gpu, "timeout": order.timeout, "attempts": order.attempts,
                 "bound_usd": str(order.attempt_usd * order.attempts)} for unit_id, order in missing]  # fmt: skip
        print(json.dumps({"would_start": rows, "bound_usd": str(bound), "warnings": warnings}, indent=2))
        return
    for warning in warnings:
        print(f"!!! warning: {warning}")
    for unit_id, order in missing:
        print(f"{unit_id}: {order.gpu}, {order.timeout} s, {order.attempts} attempts, "
              f"{dollars(order.attempt_usd * order.attempts)}")  # fmt: skip
    print(f"would start {len(missing)} of {len(wanted)}; bound {dollars(bound)}")
