"""A checkout with small suites, and a container in it whose volumes are directories."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small_suite import write_suites

from kev.worker.container import Container
from kev.worker.orders import TrialOrder
from kev.worker.sources import digest, source_hashes

CONFIG: dict[str, Any] = {
    "base": "synthetic/linear", "base_revision": "0" * 40, "epochs": 2, "seed": 3, "lr": 1e-3, "batch": 2, "accum": 1,
}  # fmt: skip
FULL = {**CONFIG, "full_ft": 1, "weights_dtype": "bf16", "save_every_steps": 4}


@dataclass
class DirectoryVolume:
    """A volume that counts its commits, and keeps what was committed apart from what is being worked on."""

    path: Path
    commits: int = 0
    failures: list[Exception] = field(default_factory=list)
    """Raised by the next commits, one each."""

    @property
    def committed(self) -> Path:
        return self.path.with_name(f"{self.path.name}-committed")

    def commit(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        shutil.copytree(self.path, self.committed, dirs_exist_ok=True)
        self.commits += 1

    def reload(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)


class MemoryClaims:
    """Claims in this process."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def put_new(self, key: str) -> bool:
        is_new = key not in self.keys
        self.keys.add(key)
        return is_new

    def has(self, key: str) -> bool:
        return key in self.keys


@dataclass
class Bench:
    """A container, its claims, and what it printed."""

    container: Container
    claims: MemoryClaims
    runs: DirectoryVolume
    leases: DirectoryVolume
    lines: list[str]

    def order(self, config: dict[str, Any] = CONFIG, **changes: Any) -> TrialOrder:
        values: dict[str, Any] = {
            "run_id": "night/trial-0/1", "sources": digest(source_hashes(self.container.root)), "study": "night",
            "index": 0, "config": config, "suite": "evals/small-v1", "transfer": "evals/small-transfer-v1",
            "nonce": "a" * 32, "gpu": "H200",
        }  # fmt: skip
        return TrialOrder(**(values | changes))

    @property
    def trial(self) -> Path:
        return self.runs.path / "night" / "00-trial-0"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = tmp_path / "checkout"
    write_suites(root)
    package = root / "kev"
    package.mkdir()
    (package / "__init__.py").write_text("VERSION = 1\n")
    (root / "modal_app.py").write_text("APP = 1\n")
    runs, leases = DirectoryVolume(tmp_path / "runs"), DirectoryVolume(tmp_path / "leases")
    runs.reload()
    leases.reload()
    return Bench(Container(runs, leases, root, "fc-1"), MemoryClaims(), runs, leases, [])
