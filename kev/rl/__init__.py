"""Reinforcement of a trained decision model: answers are drawn, rewarded by the solver, and made likelier or rarer.

    from kev.rl import reinforce

    report = reinforce(config, records, out_dir, held_out=others)

`config` is a `kev.rl.config.RlConfig` or the same as JSON, `records` are those of a suite or of a generated environment
(kev.rl.environment), and `out_dir` is a trial's directory of the shapes that kev.train writes: train.log,
metrics.jsonl, checkpoint/ with its resume points while it runs; and evals.json, how the held-out records were answered
before and after.

The policy is softmax(logits / tau) over the options of a question, tau being the temperature the checkpoint came with.
What GRPO estimates from a group of sampled completions (Shao et al., 2024, arXiv:2402.03300) is at hand here: every
option's probability is known from the one pass that was made, so the ratio, the KL to the reference and the entropy are
sums over options and not estimates, and a group costs nothing but its draws. With `group: 0` nothing is drawn at all:
every option counts with its probability, which is the mean over all groups.

trl's GRPOTrainer is not used for it, because it does not fit: it samples sequences of tokens from a causal language
model's vocabulary head, scores them, and takes its ratios token by token. This model has no vocabulary head and
generates nothing; its action is one of K options that stand in the prompt, and K differs by question. Made to fit, each
answer would cost a generation whose distribution is already known. Where a model answers in text, trl's trainer is the
right one.

    python -m kev.rl --init runs/study/00-trial-0/checkpoint --suite evals/decision-v1 --out runs/rl/0
    python -m kev.rl --init ... --environments tickets levels --records 2000 --out runs/rl/1

Importing this package loads no torch.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kev.clock import Clock, SystemClock

if TYPE_CHECKING:
    from kev.data.record import DataRecord
    from kev.rl.config import RlConfig
    from kev.rl.report import RlReport
    from kev.train.settings import TrainingOptions

__all__ = ["reinforce"]


def reinforce(
    config: "RlConfig | Mapping[str, Any]",
    records: "Sequence[DataRecord]",
    out_dir: Path,
    *,
    held_out: "Sequence[DataRecord]" = (),
    resume: bool = False,
    clock: Clock | None = None,
    options: "TrainingOptions | None" = None,
) -> "RlReport":
    """Reinforce one checkpoint and return what came of it; see the package's description.

    Raises Refused for what cannot be done, before anything is written; NotFound or DamagedFile for a checkpoint or a
    resume point that cannot be read; Diverged where the loss is no number any more.
    """
    from kev.rl.run import run_reinforcement
    from kev.train.settings import TrainingOptions

    return run_reinforcement(
        config,
        records,
        out_dir,
        held_out=held_out,
        resume=resume,
        clock=clock or SystemClock(),
        options=options or TrainingOptions(),
    )
