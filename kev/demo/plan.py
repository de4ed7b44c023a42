"""What the demo registers: its suites, the trials of its round, and the rule that they are held against."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kev.data import memos
from kev.data.draw import Draw
from kev.data.part import Generator, Part
from kev.data.record import DataRecord
from kev.data.suites import Ingredient, SuitePlan

ROUND: Final = 40
SESSION: Final = "demo"
APP: Final = "kev-demo"
AUTHORIZATION_USD: Final = 50
STAGE: Final = "tests"
CANDIDATE_STUDY: Final = "r40-full"
MEMOS, BULLETINS = "evals/memos-v1", "evals/bulletins-v1"

SLOW_AFTER: Final = 0.3
"""Share of its steps after which the first machine of the full-weight arm becomes slow."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the round is. Steps are of the full-weight arm; its first attempt must pass its timeout, and does:
    its machine becomes slow (see `faults`)."""

    train: int
    held_out: int
    hidden: int
    layers: int
    batch: int
    full_steps: int
    lora_steps: int
    timeout: int
    """Seconds of one attempt; no study is admitted with less than 60."""
    has_snapshot_arm: bool
    interval_s: float
    """Between passes of the watcher."""


FULL = Size(train=600, held_out=200, hidden=32, layers=1, batch=8, full_steps=360, lora_steps=160, timeout=90,
            has_snapshot_arm=True, interval_s=3.0)  # fmt: skip
FAST = Size(train=400, held_out=100, hidden=32, layers=1, batch=8, full_steps=160, lora_steps=30, timeout=60,
            has_snapshot_arm=False, interval_s=1.0)  # fmt: skip

ASKED: Final = ("signed", "size")
"""Of what a note says, what is asked: a model this small learns to read it in seconds."""


def notes(generate: Generator) -> Generator:
    """The records of `generate` with only the questions of ASKED."""

    def generated(draw: Draw, part: Part) -> Iterator[list[DataRecord]]:
        for group in generate(draw, part):
            yield [_only_asked(record) for record in group]

    return generated


def _only_asked(record: DataRecord) -> DataRecord:
    return record.model_copy(update={"questions": {name: record.questions[name] for name in ASKED}})


def suites(size: Size) -> tuple[SuitePlan, SuitePlan]:
    """What is trained on, and what never is: the second is where temperatures are fitted."""
    held_out = {"calibration": size.held_out, "development": size.held_out, "test": size.held_out}
    return (
        SuitePlan(
            "memos-v1", "Short memos, to train on.", 11,
            (Ingredient(notes(memos.generate_memos), ("memos",), {"train": size.train, **held_out}),),
            trainable=("memos",),
        ),
        SuitePlan(
            "bulletins-v1", "Bulletins that ask for the same facts, never trained on.", 12,
            (Ingredient(notes(memos.generate_bulletins), ("bulletins",), held_out),),
        ),
    )  # fmt: skip


def plans(size: Size, base: Path) -> dict[str, list[dict[str, Any]]]:
    """The trials of every study, by its name. `base` is a directory that containers can read."""
    common = {
        "base": str(base), "base_revision": "0" * 40, "epochs": 5, "lr": 1e-3,
        "batch": size.batch, "accum": 1, "head_dim": 128, "p_none": 0, "p_none_distract": 0, "p_distract": 0,
    }  # fmt: skip
    return {
        CANDIDATE_STUDY: [common | {"full_ft": 1, "weights_dtype": "bf16", "max_steps": size.full_steps,
                                    "save_every_steps": max(1, size.full_steps // 12), "snapshot_fractions": "0.5"}],
        "r40-lora": [common | {"lora": 8, "max_steps": size.lora_steps}],
    }  # fmt: skip


def snapshot_step(size: Size) -> int:
    return (size.full_steps + 1) // 2


def spec(size: Size) -> dict[str, Any]:
    """The round."""
    study = {"suite": MEMOS, "transfer": BULLETINS, "gpu": "H200", "timeout": size.timeout, "budget": 2}
    trained = {"parent": "base", "trained_on": [MEMOS]}
    arms: dict[str, Any] = {"tiny-full": {"trial": f"runs/{CANDIDATE_STUDY}/00-trial-0", **trained}}
    if size.has_snapshot_arm:
        place = f"/runs/{CANDIDATE_STUDY}/00-trial-0/snapshots/step-{snapshot_step(size):07d}/checkpoint"
        arms["tiny-half"] = {"checkpoint": place, "transfer_read": "bulletins", **trained}
    arms["tiny-lora"] = {"trial": "runs/r40-lora/00-trial-0", **trained}
    return {
        "round": ROUND,
        "registered": f"PLAN.md > Round {ROUND}: is a tiny model better than no training?",
        "gpu": "H200",
        "app": APP,
        "studies": {name: {"plan": f"experiments/round{ROUND}/{name}.json", **study}
                    for name in (CANDIDATE_STUDY, "r40-lora")},
        "reads": {
            "memos": {"suite": MEMOS},
            "pool": {"suite": BULLETINS, "flags": "--split calibration"},
            "memostest": {"suite": MEMOS, "flags": "--allow-test"},
            # A snapshot has no trial of its own that was read for transfer.
            **({"bulletins": {"suite": BULLETINS}} if size.has_snapshot_arm else {}),
        },
        "read_timeout": {"tiny": 120},
        "temperature": {"reads": ["pool"], "exclude_reads": ["transfer"],
                        "ci": {"level": 0.9, "samples": 200, "seed": 0}},
        "parents": {"base": {"trial": "runs/base/00-trial-0", "pooled": True, "reads": {
            tag: f"runs/base-{tag}" for tag in ("memos", "pool", "memostest")}}},
        "arms": arms,
        "rule": {
            "panels": {
                "memos": {"reads": ["memos"], "metrics": ["acc", "brier", "ece"]},
            },
            "criteria": {
                "1_memos_brier_upper_below_0": {"left": "memos.brier.upper", "op": "<", "right": 0},
                "2_memos_acc_lower_at_least_minus_2pp": {"left": "memos.acc.lower", "op": ">=", "right": -0.02},
                "3_memos_ece_at_most_0.2": {"left": "memos.ece.candidate", "op": "<=", "right": 0.2},
            },
            "rank": [{"by": "memos.brier.delta", "order": "asc"}],
        },
        "confirm": {
            STAGE: {
                "candidate_reads": "runs/r40c-{size}-cand-{tag}",
                "panels": {"memostest": {"reads": ["memostest"], "metrics": ["acc", "brier"]}},
                "criteria": {"memostest_brier_upper_below_0": {"left": "memostest.brier.upper", "op": "<", "right": 0}},
            }
        },
    }  # fmt: skip


SECTION = f"""# Plan

## Where we stand

Nothing has been trained here yet. The parent answers every question as if each option were as likely.

## Round {ROUND}: is a tiny model better than no training?

A random base of a few thousand weights is trained on memos, all of its weights in one arm and an adapter in another.
An adapter on a base that knows nothing should learn next to nothing. Temperatures are fitted on bulletins, which
nobody trains on. All money is simulated.
"""


def candidate_line(arm: str) -> str:
    return f"\n- Candidate (tiny): `{arm}`\n"


def faults(size: Size) -> str:
    """What goes wrong on purpose: the machine of the full-weight arm becomes slow, once, and so it times out."""
    first = max(1, int(size.full_steps * SLOW_AFTER) // 10 * 10)
    return f"""[[container]]
function = "run_full_trial"
event = "slow"
at_log = "step {first}/"
times = 1
"""
