"""`python -m kev.rounds pull`: bring home what a study or a read has committed. One pull of a name at a time."""

import argparse
import json
from functools import partial
from pathlib import Path

from kev import files
from kev.commitments import is_on_record
from kev.compute.protocol import Entry, EntryKind, PullReport
from kev.compute.pull import is_weight
from kev.errors import KevError, NotFound
from kev.ledger.places import parts_of
from kev.ledger.units import Unit
from kev.records.ledger import Order
from kev.rounds.engine import RUNS_VOLUME, Engine, add_session_arguments, run_engine
from kev.rounds.patience import patiently
from kev.rounds.specs import LoadedSpec


async def pull_unit(engine: Engine, unit: Unit, *, weights: bool = False) -> PullReport:
    """Fetch what `unit` wrote to where it belongs; repeating it fetches only what is missing.

    Raises LockHeld if the name is being pulled, NotFound if it wrote nothing, or a RemoteError.
    """
    parts = parts_of(unit.order)
    if not parts:
        raise NotFound(f"{unit.id}: writes nothing that a pull could bring home")
    done, missing = PullReport(), []
    # The scores of a trial go to its study, of which there is one pull at a time.
    is_trial = unit.order.kind in ("trial", "rescore")
    name = str(unit.order.payload.get("study") or unit.order.name) if is_trial else unit.order.name
    with files.locked(engine.runs / f".pull-{name.replace('/', '-')}.lock"):
        for remote, local in parts:
            try:
                done += await engine.compute.pull(RUNS_VOLUME, f"/{remote}", engine.root / local, weights=weights)
            except NotFound as error:
                missing.append(error)
        if len(missing) == len(parts):
            raise missing[0]
        if is_trial:
            _rank(engine, name)
    return done


def _rank(engine: Engine, study: str) -> None:
    """Bring results.jsonl of a study up to its trials. It decides nothing, so that nothing about it stops a watch."""
    from kev.trial.ranking import rank_again

    try:
        rank_again(engine.runs / study)
    except (KevError, OSError) as error:
        engine.say(f"!!! runs/{study}/results.jsonl was left as it is: {error}")


async def list_parts(engine: Engine, order: Order) -> list[Entry]:
    """Everything that a unit has on the volume. Raises a RemoteError."""
    found = []
    for remote, _ in parts_of(order):
        found += await engine.compute.listdir(RUNS_VOLUME, f"/{remote}", recursive=True)
    return found


def names_at_home(root: Path, order: Order) -> frozenset[str]:
    """The files that are here in every directory that a unit writes."""
    found = [frozenset(files.list_names(root / local)) for _, local in parts_of(order)]
    return frozenset.intersection(*found) if found else frozenset()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pull`."""
    add_session_arguments(parser)
    parser.add_argument("--name", required=True, metavar="NAME", help="a study, or the directory of a read")
    parser.add_argument("--weights", action="store_true", help="weights and resume points too")
    parser.add_argument("--dry-run", action="store_true", help="say what would be fetched")


def pull_command(arguments: argparse.Namespace) -> int:
    """Fetch every unit of a name. Raises KevError."""

    async def work(engine: Engine, _: LoadedSpec) -> int:
        units = [unit for unit in engine.ledger.read().of_name(arguments.name) if unit.counted]
        if not units:
            is_on_record(engine.runs, arguments.name)
            raise NotFound(f"{arguments.name}: the ledger has no study and no read of that name")
        out = {}
        for unit in units:
            if arguments.dry_run:
                entries = await patiently(engine.gate, partial(list_parts, engine, unit.order))
                wanted = [entry for entry in entries if entry.kind is EntryKind.FILE
                          and (arguments.weights or not is_weight(entry.path))]  # fmt: skip
                out[unit.id] = {"files": len(wanted), "bytes": sum(entry.size for entry in wanted)}
            else:
                done = await pull_unit(engine, unit, weights=arguments.weights)
                out[unit.id] = {"fetched": len(done.fetched), "kept": len(done.kept), "withheld": len(done.withheld),
                                "verified": len(done.verified), "bytes": done.bytes_fetched}  # fmt: skip
        print(json.dumps(out, indent=2) if arguments.json else
              "\n".join(f"{name}: {', '.join(f'{key} {count}' for key, count in row.items())}"
                        for name, row in out.items()))  # fmt: skip
        return 0

    return run_engine(arguments, work)
