"""Names that an earlier round has used: a study, or a directory of a confirmation, is never made twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kev.document import JsonPath
from kev.errors import KevError
from kev.files import read_json
from kev.records.spec import Directories, size_of
from kev.rounds.subject import Subject
from kev.rounds.templates import expand
from kev.spelling import on_any_disk


def check_prior_use(subject: Subject) -> None:
    """Compare the round's names with those of every earlier spec beside it."""
    confirmations = dict(_confirmations(subject))
    for path, other in _earlier_specs(subject):
        number = other["round"]
        studies = other.get("studies")
        used = {on_any_disk(name): name for name in studies} if isinstance(studies, dict) else {}
        for name in subject.spec.studies:
            if (twin := used.get(on_any_disk(name))) is not None:
                other_name = "of that name" if twin == name else f"named {twin!r}, the same on some file systems"
                message = f"round {number} has a study {other_name} ({path.name}); a name is used once"
                subject.problems.add("used-name", ("studies", name), message)
        arms = list(other["arms"]) if isinstance(other.get("arms"), dict) else []
        stages = other.get("confirm")
        for stage in stages.values() if isinstance(stages, dict) else ():
            reads = stage.get("candidate_reads") if isinstance(stage, dict) else None
            tags = list(other["reads"]) if isinstance(other.get("reads"), dict) else []
            for directory in _directories(reads, number, arms, tags):
                if (where := confirmations.get(on_any_disk(directory))) is not None:
                    message = f"{directory} is where round {number} reads its candidate ({path.name})"
                    subject.problems.add("used-name", where, message)


def _confirmations(subject: Subject) -> Iterator[tuple[str, JsonPath]]:
    spec = subject.spec
    for name, stage in spec.confirm.items():
        where: JsonPath = ("confirm", name, "candidate_reads")
        tags = list(spec.reads)
        for directory in _directories(stage.candidate_reads, spec.round, list(spec.arms), tags):
            yield on_any_disk(directory), where


def _directories(reads: Directories | Any, number: int, arms: list[str], tags: list[str]) -> Iterator[str]:
    table = dict.fromkeys(tags, reads) if isinstance(reads, str) else reads if isinstance(reads, dict) else {}
    for tag, template in table.items():
        for arm in arms if isinstance(template, str) else ():
            yield expand(template, round_number=number, arm=arm, size=size_of(arm), tag=tag)


def _earlier_specs(subject: Subject) -> Iterator[tuple[Path, dict[str, Any]]]:
    own = subject.document.path.absolute()
    try:
        paths = sorted((subject.checkout.root / "experiments" / "rounds").glob("r*.json"))
    except OSError:
        return
    for path in paths:
        try:
            value = read_json(path)
        except KevError:
            continue  # it has findings of its own, when it is validated
        number = value.get("round") if isinstance(value, dict) else None
        if not isinstance(number, int) or isinstance(number, bool) or path.absolute() == own:
            continue
        if number < subject.spec.round:
            yield path, value
