"""Freezing suites: from a plan to the bytes of partitions and manifest, and never over a suite that would change."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kev import files
from kev.data.draw import Draw
from kev.data.part import Part
from kev.data.record import DataRecord, check_partition
from kev.data.render import render
from kev.data.suites import SuitePlan
from kev.data.variants import variants
from kev.errors import KevError, NotFound, Refused

MANIFEST = "manifest.json"
ABSENT = "no such file"
MAX_REPEATS = 50
"""Groups in a row that may repeat a state before a generator is said to have run dry."""

BRANCH_TOKENS = 640
PACKED_TOKENS = 1664
STATE_STEP = 256

POLICY = {
    "labels": "each is the answer of its generator's solver to _meta.facts; the text states every fact and the rule",
    "partitions": "templates and names of train, of calibration and development, and of test are three disjoint packs",
    "states": "no state occurs twice, in one partition or in two; variants repeat the state of their parent",
    "admission": "max_state is in bytes of UTF-8, which no byte-level tokenizer exceeds in tokens",
}


def build(plan: SuitePlan) -> dict[str, bytes]:
    """The files of the suite, name to bytes, manifest last: a pure function of `plan` and of the code in kev/data.

    Raises ValueError if a generator runs dry or makes a record that its own checks refuse.
    """
    seen: set[str] = set()
    partitions = {name: _partition(plan, name, seen) for name in plan.partitions}
    built = {
        f"{name}.jsonl": b"".join(files.dump_json_line(record.to_json()) for record in records)
        for name, records in partitions.items()
    }
    return built | {MANIFEST: files.dump_json(_manifest(plan, partitions, built))}


def freeze(root: Path, plan: SuitePlan) -> str:
    """Write the suite under `root` unless it is there already; says in one line what was done.

    Raises Refused, having written nothing, if any frozen byte would change.
    """
    directory = root / plan.name
    built = build(plan)
    if not (directory / MANIFEST).exists():
        for name, data in built.items():
            files.write_atomic(directory / name, data)
        return f"{directory}: frozen, {sum(map(len, built.values())):,} bytes"
    faults = [fault for fault in differences(directory, built) if not fault.endswith(ABSENT)]
    if faults:
        raise Refused(f"{faults[0]}; a frozen suite is never changed: freeze a new version under a new name")
    missing = [name for name in built if not (directory / name).exists()]
    for name in missing:
        files.write_atomic(directory / name, built[name])
    return f"{directory}: {'restored ' + ', '.join(missing) if missing else 'unchanged'}"


def differences(directory: Path, built: Mapping[str, bytes]) -> list[str]:
    """What in `directory` is not as built, a line each; the hashes of the code that froze it may differ."""
    return [fault for name, data in built.items() if (fault := _difference(directory / name, data))]


def _difference(path: Path, built: bytes) -> str | None:
    try:
        found = files.read_bytes(path)
    except NotFound:
        return f"{path}: {ABSENT}"
    except KevError as error:
        return str(error)
    if found == built or (path.name == MANIFEST and _without_code(found) == _without_code(built)):
        return None
    if found.replace(b"\r\n", b"\n") == built:
        return f"{path}: only its line endings differ; check it out without line-ending conversion"
    return f"{path}: not what the generators make"


def shared_states(plans: tuple[SuitePlan, ...]) -> list[str]:
    """Lines that name states which two of the suites share."""
    owner: dict[str, str] = {}
    shared = []
    for plan in plans:
        seen: set[str] = set()
        for name in plan.partitions:
            _partition(plan, name, seen)
        shared += [f"{plan.name} and {owner[key]} share a state ({key[:12]})" for key in seen if key in owner]
        owner |= dict.fromkeys(seen, plan.name)
    return shared


def _partition(plan: SuitePlan, name: str, seen: set[str]) -> list[DataRecord]:
    part = Part.named(name)
    draw = Draw(plan.seed, f"{plan.name}:{name}")
    records: list[DataRecord] = []
    for number, ingredient in enumerate(plan.ingredients):
        stream = Draw(plan.seed, f"{plan.name}:{name}:{number}")
        wanted = ingredient.groups.get(name, 0)
        for group in _unseen(ingredient.generator(stream, part), wanted, seen):
            records += group
    if name in ("development", "test"):
        records += variants(draw, records)
    check_partition(records)
    return records


def _unseen(groups: Iterator[list[DataRecord]], wanted: int, seen: set[str]) -> Iterator[list[DataRecord]]:
    repeats = 0
    while wanted:
        group = next(groups)
        keys = {str(record.meta.text_sha256) for record in group}
        if keys & seen or len(keys) < len(group):
            repeats += 1
            if repeats == MAX_REPEATS:
                raise ValueError(f"{group[0].meta.source}: {MAX_REPEATS} groups in a row repeat a state")
            continue
        seen |= keys
        repeats = 0
        wanted -= 1
        yield group


def _manifest(
    plan: SuitePlan, partitions: Mapping[str, list[DataRecord]], built: Mapping[str, bytes]
) -> dict[str, Any]:
    sources = [source for ingredient in plan.ingredients for source in ingredient.sources]
    longest = max(len(render(record.state).encode()) for records in partitions.values() for record in records)
    max_state = -(-(longest + 1) // STATE_STEP) * STATE_STEP
    return {
        "version": 1,
        "description": plan.description,
        "seed": plan.seed,
        "eval_only": not plan.trainable,
        "files": {f"{name}.jsonl": _entry(records, built[f"{name}.jsonl"]) for name, records in partitions.items()},
        "trainable_sources": list(plan.trainable),
        "eval_only_sources": [source for source in sources if source not in plan.trainable],
        "holdout_sources": list(plan.held_out),
        "base_revisions": {},
        "context": {
            "max_state": max_state,
            "max_branch": max_state + BRANCH_TOKENS,
            "max_packed": max_state + PACKED_TOKENS,
            "truncate": False,
        },
        "policy": POLICY,
        "code_hashes": code_hashes(),
        **plan.further,
    }


def _entry(records: list[DataRecord], data: bytes) -> dict[str, Any]:
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "records": len(records),
        "questions": sum(len(record.questions) for record in records),
        "bytes": len(data),
        "by_source": dict(Counter(record.meta.source for record in records)),
    }


def code_hashes() -> dict[str, str]:
    """The sha256 of every module of this package, by its path in the project."""
    here = Path(__file__).parent
    return {
        f"kev/data/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(here.glob("*.py"))
    }


def _without_code(data: bytes) -> Any:
    with suppress(ValueError):
        manifest = files.parse_json(data)
        if isinstance(manifest, dict):
            return {key: value for key, value in manifest.items() if key != "code_hashes"}
    return None
