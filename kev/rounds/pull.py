"""`python -m kev.rounds pull`: bring home what a study or a read has committed. One pull of a name at a time."""

import argparse
import json

from kev import files
from kev.compute.protocol import PullReport
from kev.errors import NotFound
from kev.ledger.units import Unit
from kev.rounds.engine import RUNS_VOLUME, Engine, add_session_arguments, run_engine
from kev.rounds.specs import LoadedSpec


async def pull_unit(engine: Engine, unit: Unit, *, weights: bool = False) -> PullReport:
    """Fetch what `unit` wrote to where it belongs; repeating it fetches only what is missing.

    Raises LockHeld if the name is being pulled, or a RemoteError.
    """
    with files.locked(engine.runs / f".pull-{unit.order.name.replace('/', '-')}.lock"):
        return await engine.compute.pull(
            RUNS_VOLUME, f"/{unit.order.remote}", engine.root / unit.order.local, weights=weights
        )


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
            raise NotFound(f"{arguments.name}: the ledger has no study and no read of that name")
        out = {}
        for unit in units:
            if arguments.dry_run:
                entries = await engine.compute.listdir(RUNS_VOLUME, f"/{unit.order.remote}", recursive=True)
                out[unit.id] = {"files": len(entries), "bytes": sum(entry.size for entry in entries)}
            else:
                done = await pull_unit(engine, unit, weights=arguments.weights)
                out[unit.id] = {"fetched": len(done.fetched), "kept": len(done.kept), "withheld": len(done.withheld),
                                "verified": len(done.verified), "bytes": done.bytes_fetched}  # fmt: skip
        print(json.dumps(out, indent=2) if arguments.json else
              "\n".join(f"{name}: {', '.join(f'{key} {count}' for key, count in row.items())}"
                        for name, row in out.items()))  # fmt: skip
        return 0

    return run_engine(arguments, work)
