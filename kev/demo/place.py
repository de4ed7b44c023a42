"""The checkout that a demo works in: sources, frozen suites, a registered round, what its parent answered."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from kev import baseline, files
from kev.data.freeze import freeze
from kev.demo import plan
from kev.errors import NotFound
from kev.git import git
from kev.linear import fit
from kev.session.view import STATE_SUFFIX
from kev.suite import open_suite

REPOSITORY = Path(__file__).parents[2]
BESIDE = ("modal_app.py", "pyproject.toml", "constraints.txt", ".gitignore")


class Place:
    """The folders and files of one demo. `work` is the checkout, with `runs/` in it."""

    def __init__(self, root: Path, size: plan.Size) -> None:
        self.root = root.resolve()
        self.size = size
        self.session = plan.SESSION
        """The name of the session that pays."""

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def runs(self) -> Path:
        return self.work / "runs"

    @property
    def emulator(self) -> Path:
        return self.root / "emulator"

    @property
    def faults(self) -> Path:
        return self.root / "faults.toml"

    @property
    def base(self) -> Path:
        return self.root / "bases" / "tiny"

    @property
    def state(self) -> Path:
        return self.runs / f"{self.session}{STATE_SUFFIX}"

    @property
    def spec(self) -> Path:
        return self.work / "experiments" / "rounds" / f"r{plan.ROUND}.json"

    @property
    def readout(self) -> Path:
        return self.runs / f"r{plan.ROUND}-readout" / f"round{plan.ROUND}.json"

    @property
    def spec_name(self) -> Path:
        """The spec, relative to the checkout."""
        return self.spec.relative_to(self.work)

    def write_faults(self) -> None:
        """What shall go wrong."""
        files.write_atomic(self.faults, plan.faults(self.size).encode())

    def register(self) -> None:
        """Sources, suites, plans and spec, committed: which registers the round."""
        if not (REPOSITORY / "modal_app.py").is_file():
            raise NotFound(f"{REPOSITORY}: no checkout of kev; the demo deploys modal_app.py, so run it from one")
        shutil.copytree(REPOSITORY / "kev", self.work / "kev")
        for name in BESIDE:
            files.write_atomic(self.work / name, files.read_bytes(REPOSITORY / name))
        for suite in plan.suites(self.size):
            freeze(self.work / "evals", suite)
        for name, trials in plan.plans(self.size, self.base).items():
            files.write_atomic(self.spec.parent.parent / f"round{plan.ROUND}" / f"{name}.json", files.dump_json(trials))
        files.write_atomic(self.spec, files.dump_json(plan.spec(self.size)))
        files.write_atomic(self.work / "PLAN.md", plan.SECTION.encode())
        git(self.work, "init", "-q")
        git(self.work, "add", "PLAN.md", "experiments", "evals", ".gitignore", *BESIDE[:-1])
        self.commit(f"Register round {plan.ROUND}")

    def read_parent(self) -> None:
        """The reads of the parent, which answers as if every option were as likely: it is what no training gives."""
        model = fit(())
        for place, suite, split in (
            ("base-memos", plan.MEMOS, "development"),
            ("base-pool", plan.BULLETINS, "calibration"),
            ("base-memostest", plan.MEMOS, "test"),
            ("base/00-trial-0/transfer", plan.BULLETINS, "development"),
        ):
            baseline.read(model, open_suite(self.work / suite), split, self.runs / place, allow_test=split == "test")

    def choose(self, arm: str) -> None:
        """Write the choice of a candidate into the round's section, and commit it."""
        path = self.work / "PLAN.md"
        files.write_atomic(path, files.read_bytes(path) + plan.candidate_line(arm).encode())
        git(self.work, "add", "PLAN.md")
        self.commit(f"Choose {arm} as candidate of round {plan.ROUND}")

    def commit(self, message: str) -> None:
        git(self.work, "-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false",
            "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", message)  # fmt: skip

    def base_command(self) -> Sequence[str]:
        """Makes the base. A process of its own, so that torch is loaded nowhere else."""
        return [sys.executable, str(REPOSITORY / "scripts" / "make_tiny_base.py"), "--out", str(self.base), "--suite",
                str(self.work / plan.MEMOS), "--hidden", str(self.size.hidden), "--layers", str(self.size.layers),
                "--vocabulary", "512"]  # fmt: skip
