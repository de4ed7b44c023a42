"""A study's name: one launcher or continuation of it at a time, and never used for anything else."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kev import files
from kev.errors import Refused
from kev.gate import Gate
from kev.rounds.trial_orders import Wanted, is_same_work
from kev.spelling import on_any_disk


@contextmanager
def study_lock(runs: Path, study: str) -> Iterator[None]:
    """Hold a study. Raises LockHeld."""
    with files.locked(runs / f".continue-{study}.lock"):
        yield


def check_directory_is_unused(runs: Path, study: str) -> None:
    """Raises Refused if results of that name are here: numbers of two studies must never meet under one."""
    here = {on_any_disk(name): name for name in files.list_names(runs)}
    if (taken := here.get(on_any_disk(study))) is not None:
        raise Refused(f"study {study}: runs/{taken} exists; a name is never used again")


def check_study_is_ours(gate: Gate, study: str, wanted: list[Wanted]) -> None:
    """Raises Refused if the name stands for something else, or if everything of it was started.

    What another launch reserved and never started makes way for this one.
    """
    units = gate.ledger.read()
    found = units.of_name(study)
    started = [unit for unit in found if unit.counted]
    if not started:
        for unit in found:
            if not unit.settled:
                gate.settle(unit.id, "replaced")
        return
    orders = dict(wanted)
    if any(unit.id not in orders or not is_same_work(unit.order, orders[unit.id]) for unit in found):
        raise Refused(f"study {study}: the ledger has another launch of it; a name is never used again")
    if len(started) == len(wanted):
        raise Refused(f"study {study}: launched already, see runs/{study}.spawn.json; a name is never used again")
