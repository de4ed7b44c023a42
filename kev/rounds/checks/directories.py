"""Directories that would hold the rows of two reads: what lies in one would be taken for both.

Two that fall together on a file system which keeps no letter's case or Unicode form count as one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kev.document import JsonPath
from kev.records.spec import Rule, Stage, size_of
from kev.rounds.sides import Side, candidate_side, parent_side
from kev.rounds.subject import Subject
from kev.spelling import on_any_disk


@dataclass(frozen=True, slots=True)
class Claim:
    """Which read a directory is for."""

    side: str
    checkpoint: str
    tag: str
    seat: tuple[str, str] | None = None
    """Role and size at a stage: of the arms of a size one at most is confirmed, so they share a seat."""

    def is_of(self, other: "Claim") -> bool:
        """Whether both are the same read, or can never both be made."""
        same_seat = self.seat is not None and self.seat == other.seat
        return self.tag == other.tag and (self.checkpoint == other.checkpoint or same_seat)


def check_shared_directories(subject: Subject) -> None:
    """Every directory of a read is that of one read, and of no study."""
    claims: dict[str, Claim] = {}
    for name in subject.spec.arms:
        for _, side in _sides(subject, name, None):
            for tag in subject.spec.reads:
                claim = Claim(side.name, _checkpoint(side), tag)
                _check_claim(subject, claims, side.rule_directory(tag), claim, ("arms", name))
    # A test's rows lie where its stage says, wherever the rule's templates would put them.
    by_rule = set(_tags(subject.spec.rule)) | set(subject.spec.temperature.reads if subject.spec.temperature else ())
    claims = {directory: claim for directory, claim in claims.items() if claim.tag in by_rule}
    for stage_name, stage in subject.spec.confirm.items():
        tags = [tag for tag in dict.fromkeys(_tags(stage)) if tag in subject.spec.reads]
        for name in subject.spec.arms:
            for role, side in _sides(subject, name, stage):
                where = ("confirm", stage_name, f"{role}_reads")
                for tag in tags:
                    claim = Claim(side.name, _checkpoint(side), tag, (role, size_of(name)))
                    _check_claim(subject, claims, side.directory(tag), claim, where)


def _tags(at: Rule | Stage) -> list[str]:
    return [tag for panel in at.panels.values() for tag in panel.reads] + ([at.unknowable] if at.unknowable else [])


def _sides(subject: Subject, name: str, stage: Stage | None) -> Iterator[tuple[str, Side]]:
    yield "candidate", candidate_side(subject.spec, name, stage)
    # Without a template of its own, a parent's rows of a stage lie where those of the rule do.
    if subject.spec.arms[name].parent in subject.spec.parents and (stage is None or stage.parent_reads is not None):
        yield "parent", parent_side(subject.spec, name, stage)


def _check_claim(
    subject: Subject, claims: dict[str, Claim], directory: str | None, claim: Claim, where: JsonPath
) -> None:
    if directory is None:
        return
    what = f"{directory} holds the read {claim.tag} of {claim.side}"
    studies = [f"runs/{name}" for name in subject.names("studies")]
    study = next((study for study in studies if on_any_disk(study) == on_any_disk(directory)), None)
    if study is not None:
        subject.problems.add("shared-directory", where, f"{what}, and is also that of the study {study}")
    owner = claims.setdefault(on_any_disk(directory), claim)
    if not claim.is_of(owner):
        message = f"{what}, and is also that of {owner.tag} of {owner.checkpoint}"
        subject.problems.add("shared-directory", where, message)


def _checkpoint(side: Side) -> str:
    return side.checkpoint or side.trial or side.name
