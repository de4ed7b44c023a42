"""`python -m kev.rounds new`: a new round's spec and plan section, drafted from an earlier round.

The draft is the earlier spec with its own names renumbered, without what belongs to that round alone, and without
suites that have been removed since. Nothing that exists is overwritten, and nothing is registered: that is the commit.
"""

import argparse
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev import files
from kev.document import read_document
from kev.errors import KevError, NotFound, Refused, UsageError
from kev.records.base import parse_record
from kev.records.spec import RoundSpec, size_of
from kev.rounds.criteria import parse_path
from kev.rounds.registration import PLAN_DOCUMENT, find_section
from kev.rounds.specs import find_root
from kev.suite import REMOVED_SUITES, find_removed

OF_ONE_ROUND = {
    "archive": "it marks a recorded round",
    "budget": "its figures are of that round; write the new round's own",
    "recovery": "it tells what happened in that round",
}
"""Keys that a new round must not inherit, each with the reason that is printed."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A new round that is not yet written."""

    number: int
    spec: dict[str, Any]
    section: str
    plans: dict[str, str]
    """Plans to copy: the new path for each old one."""
    notes: list[str] = field(default_factory=list)
    """What was left out or must be decided, a line each."""


def draft_round(number: int, old: dict[str, Any]) -> Draft:
    """The draft of round `number` after the spec `old`, which must be readable. Raises UsageError for a bad number."""
    before = int(old["round"])
    if number == before or number < 1:
        raise UsageError(f"a new round needs a number of its own, not {number}")
    notes: list[str] = []
    spec = copy.deepcopy(old)
    for key, reason in OF_ONE_ROUND.items():
        if spec.pop(key, None) is not None:
            notes.append(f"left out {key}: {reason}")
    _drop_removed_suites(spec, notes)
    renumber = _renumbering(before, number)
    plans = {study["plan"]: renumber(study["plan"]) for study in spec.get("studies", {}).values()}
    _renumber_spec(spec, renumber)
    spec["round"] = number
    spec["registered"] = f"{PLAN_DOCUMENT} > Round {number}"
    return Draft(number, spec, _section(number, before, spec), plans, notes)


# ------------------------------------------------------------------------------------------------- renumbering


def _renumbering(before: int, number: int) -> Callable[[str], str]:
    short = re.compile(rf"(?<![A-Za-z0-9])r{before}(?=[a-z]?(?![A-Za-z0-9]))")
    long = re.compile(rf"(?<![A-Za-z0-9])round{before}(?![0-9])")
    return lambda text: long.sub(f"round{number}", short.sub(f"r{number}", text))


def _renumber_spec(spec: dict[str, Any], renumber: Callable[[str], str]) -> None:
    """Renumber what the new round makes; suites and the parents' rows keep their names."""
    for key in ("app", "arm_reads", "construction"):
        if key in spec:
            spec[key] = _deep(spec[key], renumber)
    studies = spec.get("studies", {})
    for study in studies.values():
        study["plan"] = renumber(study["plan"])
    if studies:
        spec["studies"] = {renumber(name): study for name, study in studies.items()}
    for arm in spec["arms"].values():
        for key in ("trial", "checkpoint", "reads"):
            if key in arm:
                arm[key] = _deep(arm[key], renumber)
    for stage in spec.get("confirm", {}).values():
        for key in ("candidate_reads", "parent_reads"):
            if key in stage:
                stage[key] = _deep(stage[key], renumber)


def _deep(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _deep(item, change) for key, item in value.items()}
    return [_deep(item, change) for item in value] if isinstance(value, list) else value


# --------------------------------------------------------------------------------------------- removed suites


def _drop_removed_suites(spec: dict[str, Any], notes: list[str]) -> None:
    gone = set()
    for tag, read in list(spec["reads"].items()):
        removed = find_removed(str(read.get("suite") or read.get("decision") or ""))
        if removed is not None:
            entry = REMOVED_SUITES[removed]
            notes.append(f"left out the read {tag}: {removed} was removed on {entry['removed']}, {entry['reason']}")
            del spec["reads"][tag]
            gone.add(tag)
    for name, study in spec.get("studies", {}).items():
        for key in ("suite", "transfer"):
            removed = find_removed(study[key])
            if removed is not None:
                notes.append(f"study {name} still names {removed}, which was removed; choose another {key}")
    if not gone:
        return
    for side in [*spec["parents"].values(), *spec["arms"].values()]:
        _drop_tags(side.get("reads"), gone)
    pool = spec.get("temperature", {})
    for key in ("reads", "exclude_reads"):
        if key in pool:
            pool[key] = [tag for tag in pool[key] if tag not in gone]
    _drop_tags(pool.get("sources"), gone)
    for place, stage in _stages(spec):
        _drop_from_stage(place, stage, gone, notes)


def _drop_tags(table: Any, gone: set[str]) -> None:
    for tag in gone if isinstance(table, dict) else ():
        table.pop(tag, None)


def _drop_from_stage(place: str, stage: dict[str, Any], gone: set[str], notes: list[str]) -> None:
    for key in ("candidate_reads", "parent_reads"):
        _drop_tags(stage.get(key), gone)
    if stage.get("unknowable") in gone:
        notes.append(f"left out {place}.unknowable: its suite was removed")
        del stage["unknowable"]
    empty = set()
    for name, panel in list(stage["panels"].items()):
        kept = [tag for tag in panel["reads"] if tag not in gone]
        if not kept:
            notes.append(f"left out the panel {place}.panels.{name}: none of its reads is left")
            del stage["panels"][name]
            empty.add(name)
        elif kept != panel["reads"]:
            notes.append(f"the panel {place}.panels.{name} lost {', '.join(t for t in panel['reads'] if t in gone)}")
            panel["reads"] = kept
    for name, criterion in list(stage["criteria"].items()):
        if any(_panel_of(path) in empty for path in _texts(criterion["left"], criterion["right"])):
            notes.append(f"left out the criterion {place}.criteria.{name}: its panel is gone")
            del stage["criteria"][name]
    if stage.get("rank"):
        kept_keys = [key for key in stage["rank"] if not any(_panel_of(path) in empty for path in _texts(key["by"]))]
        if len(kept_keys) != len(stage["rank"]):
            notes.append(f"left out {len(stage['rank']) - len(kept_keys)} rank keys: their panels are gone")
            stage["rank"] = kept_keys


def _stages(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "rule", spec["rule"]
    for name, stage in spec.get("confirm", {}).items():
        yield f"confirm.{name}", stage


def _texts(*values: Any) -> Iterator[str]:
    for value in values:
        yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))


def _panel_of(text: str) -> str | None:
    try:
        return parse_path(text).panel
    except UsageError:
        return None


# ------------------------------------------------------------------------------------------------ the section


def _section(number: int, before: int, spec: dict[str, Any]) -> str:
    lines = [
        f"## Round {number}",
        "",
        f"Drafted from round {before}. Registered by the commit that first holds this section together with "
        f"`experiments/rounds/r{number}.json`, before any training or read of the round.",
        "",
        "- Question: what this round decides, in one sentence.",
        "- Change: what differs from the round before, and why.",
        f"- Arms ({len(spec['arms'])}, one candidate per size):",
    ]
    for name, arm in spec["arms"].items():
        what = arm.get("trial") or arm.get("checkpoint")
        role = "" if arm.get("select", True) else "; reported only"
        lines.append(f"  - `{name}` (size {size_of(name)}): `{what}` against `{arm['parent']}`{role}")
    studies = spec.get("studies", {})
    budget = sum(study["budget"] for study in studies.values())
    lines.append(f"- Training: {', '.join(studies)}, ${budget:g} at most" if studies else "- Training: none")
    lines.append("- Rule, all of:")
    lines += [f"  - {name}: {_criterion_words(criterion)}" for name, criterion in spec["rule"]["criteria"].items()]
    stages = ", then ".join(spec.get("confirm", {}))
    lines.append(f"- Confirmation of the candidate: {stages or 'none'}")
    return "\n".join(lines) + "\n"


def _criterion_words(criterion: dict[str, Any]) -> str:
    left = " - ".join(_texts(criterion["left"]))
    plus = f" + {criterion['plus']}" if criterion.get("plus") else ""
    return f"`{left} {criterion['op']} {criterion['right']}{plus}`"


# ----------------------------------------------------------------------------------------------------- writing


def write_draft(draft: Draft, root: Path) -> list[Path]:
    """Write a draft under `root`; returns what was written or added to.

    Raises Refused, having written nothing, if the spec or a section on that round is there already.
    """
    spec_path = root / "experiments" / "rounds" / f"r{draft.number}.json"
    document = root / PLAN_DOCUMENT
    try:
        text = files.read_bytes(document).decode()
    except NotFound:
        text = ""
    except UnicodeDecodeError:
        raise Refused(f"{document}: not UTF-8; nothing was written") from None
    if find_section(text, draft.number) is not None:
        raise Refused(f"{document}: has a section on round {draft.number} already; nothing was written")
    try:
        files.create_exclusive(spec_path, files.dump_json(draft.spec))
    except FileExistsError:
        raise Refused(f"{spec_path}: is there already; nothing was written") from None
    files.append(document, ("\n" if text else "").encode() + draft.section.encode())
    written = [spec_path, document]
    for old, new in draft.plans.items():
        try:
            files.create_exclusive(root / new, files.read_bytes(root / old))
            written.append(root / new)
        except FileExistsError:
            draft.notes.append(f"{new} is there already, and was left as it is")
        except KevError:
            draft.notes.append(f"{new} is to be written; there was no {old} to copy")
    return written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `new`."""
    parser.add_argument("number", type=int, metavar="N", help="the new round's number")
    parser.add_argument(
        "--from", dest="source", type=Path, required=True, metavar="SPEC", help="the round to start from"
    )
    parser.add_argument("--root", type=Path, help="the checkout to write into (that of SPEC)")


def new_command(options: argparse.Namespace) -> int:
    """Write the draft, and print what was left out and what comes next."""
    source = read_document(options.source)
    parse_record(options.source, source.value, RoundSpec)  # a spec that cannot be read cannot be drafted from
    root = find_root(options.source) if options.root is None else options.root
    draft = draft_round(options.number, source.value)
    for path in write_draft(draft, root):
        print(f"wrote {path}")
    for note in draft.notes:
        print(f"note: {note}")
    spec = f"experiments/rounds/r{options.number}.json"
    print(f"next: edit both, run `python -m kev.rounds validate {spec}`, and register by committing them together")
    return 0
