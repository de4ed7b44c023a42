"""A small checkout that the good spec of tests/fixtures/rounds validates in, written under a directory."""

import copy
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kev.rounds.validate import Validation

Check = Callable[[Any], Validation]
"""Validates a spec, given as JSON, in the good checkout."""

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rounds"
REVISION = "0123456789abcdef0123456789abcdef01234567"
LEAVE_OUT = b'{"ids": ["street/9"]}\n'


def good_spec() -> dict[str, Any]:
    """The spec of round 201, which has every key that a spec can have."""
    text = (FIXTURES / "r201.json").read_text()
    return json.loads(text.replace("SHA256_OF_LEAVE_OUT", hashlib.sha256(LEAVE_OUT).hexdigest()))


def record(suite: str, number: int, source: str, text: str | None = None) -> dict[str, Any]:
    return {
        "state": text or f"Lamp number {number} of {suite} on the {source} went out at dusk and came back at dawn.",
        "questions": {
            "q": {"type": "noul", "instructions": "Was it dark?", "criteria": "", "label": True, "src": source}
        },
        "_meta": {"id": f"{suite}/{number}", "source": source, "variant": "clean", "group_id": f"g{number}"},
    }


def write_suite(
    directory: Path, partitions: dict[str, list[dict[str, Any]]], *, trainable: list[str], eval_only: list[str]
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    entries = {}
    for split, records in partitions.items():
        data = "".join(json.dumps(entry) + "\n" for entry in records).encode()
        (directory / f"{split}.jsonl").write_bytes(data)
        entries[f"{split}.jsonl"] = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "records": len(records),
            "questions": sum(len(entry["questions"]) for entry in records),
        }
    manifest = {
        "version": 1,
        "files": entries,
        "trainable_sources": trainable,
        "eval_only_sources": eval_only,
        "base_revisions": {"lamps/Base-2B": REVISION},
        "eval_only": not trainable,
    }
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def write_checkout(root: Path) -> Path:
    """Everything that round 201 needs; returns the path of its spec, which is not written."""
    sets = {"train": range(8), "calibration": range(8, 11), "development": range(11, 14), "test": range(14, 17)}
    suites = {"lamps": (["lanes"], []), "street": ([], ["streets", "tunnels"]), "far": ([], ["quays"]),
              "held": ([], ["bridges"])}  # fmt: skip
    for name, (trainable, eval_only) in suites.items():
        sources = trainable or eval_only
        partitions = {
            split: [record(name, number, sources[number % len(sources)]) for number in numbers]
            for split, numbers in sets.items()
            if trainable or split != "train"
        }
        if name == "street":
            partitions["development"].append(record(name, 3, "streets"))
        write_suite(root / "evals" / f"{name}-v1", partitions, trainable=trainable, eval_only=eval_only)
    plans = root / "experiments" / "round201"
    plans.mkdir(parents=True)
    full = {"base": "lamps/Base-2B", "full_ft": 1, "weights_dtype": "bf16", "max_steps": 400, "lr": 2e-6}
    (plans / "full.json").write_text(json.dumps([full]))
    delta = {"base": "lamps/Base-2B", "data": "evals/lamps-v1/train.jsonl", "replay": 100}
    (plans / "delta.json").write_text(json.dumps([delta]))
    (plans / "leave-out.json").write_bytes(LEAVE_OUT)
    for name in ("p2b-street", "p2b-far", "p2b-held", "elder-street"):
        write_rows(root / "runs" / name)
    (root / "experiments" / "rounds").mkdir()
    return root / "experiments" / "rounds" / "r201.json"


def write_rows(directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / "rows.json").write_text("[]\n")


def write_spec(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2) + "\n")
    return path


def changed(spec: dict[str, Any], *where: str | int, to: Any) -> dict[str, Any]:
    """A copy of `spec` with the value at `where` replaced, or added."""
    copied = copy.deepcopy(spec)
    holder: Any = copied
    for part in where[:-1]:
        holder = holder[part]
    holder[where[-1]] = to
    return copied


def without(spec: dict[str, Any], *where: str | int) -> dict[str, Any]:
    """A copy of `spec` without the key at `where`."""
    copied = copy.deepcopy(spec)
    holder: Any = copied
    for part in where[:-1]:
        holder = holder[part]
    del holder[where[-1]]
    return copied


def git(root: Path, *arguments: str, at: str | None = None) -> str:
    """Run git in `root`, as a person with a name and, for commits, at a given time."""
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
    }
    if at is not None:
        environment |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
