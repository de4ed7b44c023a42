"""Confirmation: one registered stage for the candidate that the rule chose, decided once.

Written to `runs/r<N>-verdict/<size>-<stage>.json` and never over anything: a verdict that could be computed again
until it pleases would be none.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import KevError, Refused
from kev.metrics import Resamples
from kev.procedure.unchanged import changes_since_registration
from kev.records.spec import RoundSpec
from kev.rounds.comparison import Comparer
from kev.rounds.guards import candidate_of, confirmation_problems
from kev.rounds.panels import CountTokens
from kev.rounds.places import verdict_path
from kev.rounds.registration import registration
from kev.rounds.rowstore import RowStore
from kev.rounds.specs import load_spec


def confirm(
    spec: RoundSpec,
    root: Path,
    stage: str,
    arm: str,
    *,
    out: Path | None = None,
    resamples: Resamples | None = None,
    count_tokens: CountTokens | None = None,
) -> dict[str, Any]:
    """The verdict of `stage` on `arm`, as plain JSON values; nothing is written.

    Raises Refused with every rule that forbids it (see `confirmation_problems`), or if rows are missing.
    """
    problems = confirmation_problems(spec, root, stage, arm, out=out)
    if problems:
        raise Refused(f"round {spec.round}, stage {stage}: " + "; ".join(problems))
    comparison = Comparer(spec, RowStore(root), resamples or Resamples(), count_tokens).compare(arm, stage)
    if not comparison["complete"]:
        raise Refused(
            f"round {spec.round}, stage {stage}: no verdict while rows are missing: {', '.join(comparison['missing'])}"
        )
    return {"round": spec.round, "stage": stage, "arm": arm, **comparison}


def write_verdict(path: Path, value: dict[str, Any]) -> None:
    """Write a verdict for good. Raises Refused if one is there already, KevError if it cannot be written."""
    try:
        files.create_exclusive(path, files.dump_json(value))
    except FileExistsError:
        raise Refused(f"{path} is there already, and a verdict is never replaced") from None
    except OSError as error:
        raise KevError(f"{path}: cannot be written ({error.strerror or error})") from None


def check_unchanged(path: Path, root: Path, spec: RoundSpec) -> None:
    """Raises Refused if what the round rests on is no longer what it was when it was registered."""
    if spec.archive is not None:
        return
    try:
        commit = registration(path, root).commit
    except Refused:
        return  # nothing of it can have been launched; what else is lacking, the other rules name
    changed = changes_since_registration(root, spec, commit)
    if changed:
        raise Refused(f"round {spec.round}: {'; '.join(changed)}")


def confirm_command(args: argparse.Namespace) -> int:
    """`kev.rounds confirm`: check, decide, write, print. Raises KevError; 0 whatever the verdict."""
    loaded = load_spec(args.spec, args.root)
    spec, root = loaded.spec, loaded.root
    arm = args.arm or candidate_of(spec, root)
    check_unchanged(args.spec, root, spec)
    value = confirm(spec, root, args.stage, arm, out=args.out)
    path = verdict_path(spec, root, args.stage, arm, args.out)
    write_verdict(path, value)
    if args.json:
        sys.stdout.write(files.dump_json(value).decode())
        return 0
    from kev.rounds.table import print_verdict

    print_verdict(value, spec.confirm[args.stage])
    print(path)
    return 0
