"""A registered round in a checkout, with a session and a provider that lives in the test."""

import json
import shutil
from pathlib import Path
from typing import Any

from checkouts import changed, git, good_spec, write_checkout, write_spec
from lab import Lab

from kev.rounds.engine import Engine
from kev.rounds.specs import LoadedSpec, load_spec
from kev.rounds.trial_orders import Provenance
from kev.worker.sources import source_hashes

PLAN = "# Plan\n\n## Round 201\n\nDoes it help?\n"


class RoundLab(Lab):
    """Round 201: a full-weight study, a delta, a blend; and an authorization for all of it."""

    def __init__(self, root: Path, spec: dict[str, Any] | None = None, authorization: str = "200") -> None:
        spec_path = write_checkout(root)
        (root / "PLAN.md").write_text(PLAN)
        (root / "kev").mkdir(exist_ok=True)
        (root / "kev" / "__init__.py").write_text("")  # a checkout's sources are its own, and these few
        write_spec(spec_path, changed(good_spec(), "round", to=201) if spec is None else spec)
        git(root, "init", "-q")
        git(root, "add", "-A", ".")
        git(root, "commit", "-qm", "Register round 201")
        super().__init__(root, authorization)
        self.spec_path: Path = spec_path
        self.compute.hashes = source_hashes(root)

    @classmethod
    def copy_of(cls, prepared: Path, root: Path, authorization: str = "200") -> "RoundLab":
        """A lab in a copy of a prepared checkout: making the commit is what takes long."""
        shutil.copytree(prepared, root)
        (root / "runs" / "night-state.json").unlink()
        lab = cls.__new__(cls)
        Lab.__init__(lab, root, authorization)
        lab.spec_path = root / "experiments" / "rounds" / "r201.json"
        lab.compute.hashes = source_hashes(root)
        return lab

    @property
    def loaded(self) -> LoadedSpec:
        return load_spec(self.spec_path, self.root)

    def engine(self) -> Engine:
        """An engine as a restarted process has it."""
        return Engine(self.root, self.new_gate(), self.compute.count_claims, Provenance("sha", "c0ffee", "night"))

    def ledger_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.runs / "ledger.jsonl").read_text().splitlines()]
