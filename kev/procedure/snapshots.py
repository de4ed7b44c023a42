"""A registered full-weight trial keeps snapshots: without them nobody finds its best point once it is over.

The room that they take is its owner's to spend, so is to do without them: `launch --owner-allows STUDY`.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from kev.document import read_value
from kev.errors import KevError, Refused
from kev.records.spec import RoundSpec


def studies_without_snapshots(root: Path, spec: RoundSpec) -> list[str]:
    """The studies with a full-weight trial that turns its snapshots off."""
    found = []
    for name, study in spec.studies.items():
        try:
            plan: Any = read_value(root / study.plan)
        except KevError:
            continue  # validation says so
        entries = plan if isinstance(plan, list) else []
        if any(isinstance(entry, dict) and entry.get("full_ft") == 1 and entry.get("snapshot_fractions") == "none"
               for entry in entries):  # fmt: skip
            found.append(name)
    return found


def check_snapshots(root: Path, spec: RoundSpec, owner_allows: Collection[str]) -> None:
    """Raises Refused for a study that keeps no snapshot, unless its owner allows that."""
    for name in studies_without_snapshots(root, spec):
        if name not in owner_allows:
            raise Refused(f"study {name}: its plan keeps no snapshot of a full-weight trial (snapshot_fractions "
                          f"\"none\"); its owner says --owner-allows {name}")  # fmt: skip
