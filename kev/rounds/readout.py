"""The read-out of a round: every arm against its parent under the registered rule, and whom the rule chooses.

Written to `runs/r<N>-readout/round<N>.json`. It is computed from rows on disk alone, so it can be computed again at
any time, also for rounds long finished; with rows missing it says which, and decides nothing that is not known.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import BadRows, DamagedFile, KevError
from kev.metrics import Resamples
from kev.records.spec import RoundSpec
from kev.rounds.comparison import Comparer
from kev.rounds.criteria import rank
from kev.rounds.guards import sides_of
from kev.rounds.panels import CountTokens
from kev.rounds.places import readout_path
from kev.rounds.rowstore import RowStore
from kev.rounds.specs import load_spec
from kev.text import visible


def readout(
    spec: RoundSpec, root: Path, *, resamples: Resamples | None = None, count_tokens: CountTokens | None = None
) -> dict[str, Any]:
    """The read-out of `spec` from the rows under `root`, as plain JSON values.

    `passed` of an arm is null wherever it is not known: with a pool or a panel missing and nothing failed yet, and
    with no criteria. It is false only where a criterion is false, which no further row could change. Remarks that a
    reader of the numbers should see are under `notes`. Raises KevError for input that cannot be believed.
    """
    store = RowStore(root)
    comparer = Comparer(spec, store, resamples or Resamples(), count_tokens)
    arms, errors = {}, []
    for arm in spec.arms:
        try:
            arms[arm] = comparer.compare(arm)
        except (BadRows, DamagedFile) as error:
            errors.append(error)
            arms[arm] = _unreadable(spec, arm, error)
    if len(errors) == len(arms) and errors:
        raise errors[0]
    selectable = {name: arm.select for name, arm in spec.arms.items()}
    ranking = rank(arms, [key.to_json() for key in spec.rule.rank], selectable=selectable)
    notes = [*store.notes, *_drop_notes(spec, arms, comparer.dropped)]
    notes += [f"{arm} passed and has no value to rank by: it sorts last" for arm in ranking.unranked]
    out = {
        "round": spec.round,
        "registered": spec.registered,
        "drop_ids": sorted(spec.drop_ids),
        "arms": arms,
        "ranking": ranking.order,
        "candidates": ranking.candidates,
    }
    return {**out, "notes": notes} if notes else out


def write_readout(path: Path, value: dict[str, Any]) -> None:
    """Replace the read-out at `path`, wholly or not at all. Raises KevError if it cannot be written."""
    try:
        files.write_atomic(path, files.dump_json(value))
    except OSError as error:
        raise KevError(f"{path}: cannot be written ({error.strerror or error})") from None


def readout_command(args: argparse.Namespace) -> int:
    """`kev.rounds readout`: compute, write, print. Raises KevError.

    0 whatever the verdict; 1 if an arm's rows cannot be believed, with a line for it on stderr.
    """
    loaded = load_spec(args.spec, args.root)
    value = readout(loaded.spec, loaded.root)
    path = readout_path(loaded.spec, loaded.root, args.out)
    write_readout(path, value)
    if args.json:
        sys.stdout.write(files.dump_json(value).decode())
    else:
        from kev.rounds.table import print_readout

        print_readout(value, loaded.spec)
        print(path)
    errors = [arm["error"] for arm in value["arms"].values() if "error" in arm]
    for error in errors:
        print(visible(error), file=sys.stderr)
    return 1 if errors else 0


def _unreadable(spec: RoundSpec, arm: str, error: KevError) -> dict[str, Any]:
    candidate, parent = sides_of(spec, arm)
    return {
        "trial": candidate.trial,
        "parent": parent.trial,
        "missing": [],
        "error": str(error),
        "complete": False,
        "passed": None,
    }


def _drop_notes(spec: RoundSpec, arms: dict[str, Any], dropped: set[str]) -> list[str]:
    # With reads missing, an id may only not have been met yet.
    if not all(arm["complete"] for arm in arms.values()):
        return []
    return [f"drop_ids: {identifier!a} matches no row of any panel" for identifier in spec.drop_ids
            if identifier not in dropped]  # fmt: skip
