"""The two sides of a comparison, and the directory in which each has its rows of a read.

A panel's tag is looked up in the side's own reads. The reserved tag `transfer` is the read made inside the trial,
`<trial>/transfer`, unless a transfer read is declared: then it is that tag's directory.
"""

from dataclasses import dataclass

from kev.records.spec import Arm, Directories, RoundSpec, Stage, size_of
from kev.rounds.templates import expand

TRANSFER = "transfer"


@dataclass(frozen=True, slots=True)
class Side:
    """One checkpoint of a comparison, at the rule stage or at a confirmation stage."""

    round_number: int
    name: str
    """The arm's name, or the parent's."""
    label: str
    """What {arm} stands for in the templates."""
    trial: str | None
    checkpoint: str | None
    reads: Directories
    """Where its rows of this stage lie."""
    rule_reads: Directories
    """Where its rows of the rule stage lie: the pool and the transfer read stay there at every stage."""
    transfer_read: str | None

    def directory(self, tag: str) -> str | None:
        """The directory of a read at this stage, relative to the root; None if the side has none."""
        if tag == TRANSFER:
            return self.transfer_directory()
        return self._look_up(self.reads, tag)

    def rule_directory(self, tag: str) -> str | None:
        """The directory of a read at the rule stage: what a pool is fitted on, whatever the stage."""
        if tag == TRANSFER:
            return self.transfer_directory()
        return self._look_up(self.rule_reads, tag)

    def transfer_directory(self) -> str | None:
        """The directory of the in-trial transfer read, or of the read declared in its place."""
        if self.transfer_read is not None:
            return self._look_up(self.rule_reads, self.transfer_read)
        return f"{self.trial}/transfer" if self.trial is not None else None

    def development_directory(self) -> str | None:
        """Where a trial's development rows lie, on which an unpooled temperature is fitted."""
        return f"{self.trial}/development" if self.trial is not None else None

    def _look_up(self, reads: Directories, tag: str) -> str | None:
        if isinstance(reads, dict):
            template = reads.get(tag)
            if template is None:
                return None
        else:
            template = reads
        size = size_of(self.label)
        return expand(template, round_number=self.round_number, arm=self.label, size=size, tag=tag)


def candidate_side(spec: RoundSpec, arm_name: str, stage: Stage | None = None) -> Side:
    """The side of an arm."""
    arm = spec.arms[arm_name]
    rule_reads = arm.reads if arm.reads is not None else spec.arm_reads
    return Side(
        round_number=spec.round,
        name=arm_name,
        label=arm_name,
        trial=arm.trial,
        checkpoint=arm.checkpoint,
        reads=rule_reads if stage is None else stage.candidate_reads,
        rule_reads=rule_reads,
        transfer_read=transfer_read(spec, arm),
    )


def parent_side(spec: RoundSpec, arm_name: str, stage: Stage | None = None) -> Side:
    """The side of an arm's parent. Raises KeyError for a parent the spec does not have; validation reports it."""
    parent_name = spec.arms[arm_name].parent
    parent = spec.parents[parent_name]
    at_stage = stage is not None and stage.parent_reads is not None
    return Side(
        round_number=spec.round,
        name=parent_name,
        # A stage's template tells the two sides of one candidate apart; a parent's own names the parent.
        label=arm_name if at_stage else parent_name,
        trial=parent.trial,
        checkpoint=parent.checkpoint,
        reads=stage.parent_reads if stage is not None and stage.parent_reads is not None else parent.reads,
        rule_reads=parent.reads,
        transfer_read=parent.transfer_read,
    )


def transfer_read(spec: RoundSpec, arm: Arm) -> str | None:
    """The tag read in place of the in-trial transfer read: the arm's own word, null included, before the round's."""
    return arm.transfer_read if "transfer_read" in arm.model_fields_set else spec.transfer_read
