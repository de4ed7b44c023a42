"""What the sample session has registered before it begins: a round, its plans, its money."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from kev.records.plan import TrialConfig
from kev.records.spec import Arm, Criterion, Panel, Parent, Pool, RankKey, Read, RoundSpec, Rule, Stage, Study

NOTICE: Final = "SAMPLE: made up by `kevtui demo`; nothing was trained, read or paid for"
SESSION: Final = "sample"
ROUND: Final = 7

AUTHORIZATION: Final = Decimal("400")
RESERVE: Final = Decimal("40")
BASELINE: Final = Decimal("1200.50")
SPENT_BEFORE: Final = (Decimal("12.10"), Decimal("36.45"), Decimal("61.90"), Decimal("86.40"))
"""An hour apart, the last of them when the story begins."""
DOLLARS_PER_HOUR: Final = Decimal("25")


@dataclass(frozen=True, slots=True)
class Trial:
    """How one trial of the story goes. Times are story seconds."""

    arm: str
    index: int
    steps: int
    steps_per_second: float
    starts: float

    @property
    def label(self) -> str:
        return f"trial-{self.index}"

    @property
    def directory(self) -> str:
        return f"{self.index:02d}-{self.label}"


@dataclass(frozen=True, slots=True)
class SampleStudy:
    """One study of the story; `timeout` is in story seconds."""

    name: str
    gpu: str
    full_ft: bool
    timeout: float
    bound: Decimal
    budget: Decimal
    launched: float
    trials: tuple[Trial, ...]


STUDIES: Final = (
    SampleStudy(
        "r7-4b", "H200", False, 40.0, Decimal("18.40"), Decimal("40"), 1.0,
        (Trial("4b-a", 0, 60, 6.0, 1.5), Trial("4b-b", 1, 60, 5.0, 1.8)),
    ),
    # Too slow for its timeout: stopped, and continued from its last resume point.
    SampleStudy(
        "r7-9b", "H200:4", True, 14.0, Decimal("61.20"), Decimal("80"), 2.0, (Trial("9b-a", 0, 80, 4.0, 2.5),)
    ),
    # At risk of the same for most of the story.
    SampleStudy(
        "r7-27b", "H200:8", True, 30.0, Decimal("96.50"), Decimal("120"), 3.0, (Trial("27b-a", 0, 108, 3.0, 3.5),)
    ),
)  # fmt: skip

READS: Final = ("hard", "docs", "cal")


def spec(timeouts: Mapping[str, int]) -> RoundSpec:
    """The round, with each study's timeout in real seconds."""
    arms = {
        trial.arm: Arm(trial=f"runs/{study.name}/{trial.directory}", parent=trial.arm.partition("-")[0])
        for study in STUDIES
        for trial in study.trials
    }
    return RoundSpec(
        sample=True,
        notice=NOTICE,
        round=ROUND,
        registered=NOTICE,
        gpu="H200",
        studies={study.name: _study(study, timeouts[study.name]) for study in STUDIES},
        reads={tag: Read(suite=f"evals/sample-{tag}") for tag in READS},
        temperature=Pool(reads=["cal"]),
        parents={size: _parent(size) for size in ("4b", "9b", "27b")},
        arms=arms,
        rule=Rule(
            panels={
                "hard": Panel(reads=["hard"], metrics=["acc", "brier"]),
                "docs": Panel(reads=["docs"], metrics=["acc"]),
            },
            criteria=CRITERIA,
            rank=[RankKey(by=["hard.acc.delta", "docs.acc.delta"])],
        ),
        confirm={
            "tests": Stage(
                candidate_reads="runs/r{round}c-{size}-{tag}",
                panels={"hard": Panel(reads=["hard"], metrics=["acc"])},
                criteria={"gain": Criterion(left="hard.acc.lower", op=">", right=0)},
            )
        },
    )


CRITERIA: Final = {
    "1_hard": Criterion(left="hard.acc.lower", op=">", right=0),
    "2_docs": Criterion(left="docs.acc.lower", op=">=", right=-0.02),
    "3_brier": Criterion(left="hard.brier.candidate", op="<=", right="hard.brier.parent", plus=0.005),
}


def plan(study: SampleStudy) -> list[TrialConfig]:
    """What each trial of `study` would train."""
    return [
        TrialConfig(
            base="sample/base",
            base_revision="0" * 40,
            seed=trial.index,
            full_ft=int(study.full_ft),
            weights_dtype="bf16" if study.full_ft else "fp32",
        )
        for trial in study.trials
    ]


def _study(study: SampleStudy, timeout: int) -> Study:
    return Study(
        plan=f"experiments/round{ROUND}/{study.name}.json",
        suite="evals/sample-decision",
        transfer="evals/sample-transfer",
        gpu=study.gpu,
        timeout=timeout,
        budget=study.budget,
    )


def _parent(size: str) -> Parent:
    return Parent(trial=f"runs/r6-{size}/00-trial-0", reads=f"runs/r6-{size}-{{tag}}")
