"""Everything that is made before the first step: model, optimizer, schedule, and the plan of what is done when."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from kev.data.draw import derive_seed
from kev.errors import Refused
from kev.model.context import Context
from kev.model.decision_model import DecisionModel
from kev.model.encoding import Encoder
from kev.model.loading import new_model
from kev.model.settings import Settings
from kev.model.warm_start import warm_start
from kev.records.plan import TrialConfig, snapshot_steps
from kev.threads import use_cores
from kev.train.augment import Augmentation
from kev.train.batches import Batching, StepPlan, plan_epoch, split_by_length, split_passes
from kev.train.examples import Example
from kev.train.feed import Feed, PaddedCost
from kev.train.losses import LossWeights
from kev.train.memory import MemoryEstimate, estimate_memory, static_memory
from kev.train.optimizer import Optimizer
from kev.train.parallel import Parallel, decoder_layers, shard
from kev.train.passes import run_pass
from kev.train.schedule import OneCycle
from kev.train.settings import DEFAULT_MAX_STATE, TrainingOptions

PASS_OVERHEAD = {False: 256, True: 4096}
"""Padded tokens that cost about as much as beginning one more pass, on a CPU and on a GPU."""


@dataclass(slots=True)
class Run:
    """A run that is ready for its first step, or to have a resume point put into it."""

    config: TrialConfig
    parallel: Parallel
    model: DecisionModel
    optimizer: Optimizer
    feed: Feed
    batching: Batching
    weights: LossWeights
    schedule: OneCycle
    steps_per_epoch: int
    snapshots: list[int]
    threads: int
    arguments: dict[str, Any]
    init_source: dict[str, Any] | None = None

    @property
    def steps(self) -> int:
        return self.schedule.steps

    def plan(self, epoch: int) -> tuple[list[StepPlan], PaddedCost]:
        """The steps of an epoch and what its passes cost."""
        exact = self.batching.ceiling is not None
        cost = PaddedCost(self.feed.shapes_of_epoch(epoch) if exact else self.feed.shapes)
        records = len(self.feed.examples)
        return plan_epoch(self.batching, cost, records=records, seed=self.config.seed, epoch=epoch), cost

    def passes(self, batch: Sequence[int], cost: PaddedCost) -> list[tuple[int, ...]]:
        """A micro-batch as the passes that this rank takes it in."""
        if self.config.row_budget:
            return split_passes(batch, cost, self.config.row_budget)
        sharded = self.parallel.world > 1 and self.config.full_ft
        if sharded or self.config.perm_kl or self.config.anchor_w:
            # Ranks of a sharded model must take as many passes as each other; the divergences are means over a pass.
            return [tuple(batch)]
        return split_by_length(batch, cost, PASS_OVERHEAD[self.parallel.device.type == "cuda"])

    def reseed(self, step: int) -> None:
        """Fix what dropout draws in a step, by the step: a continuation has no random state to restore."""
        torch.manual_seed(derive_seed(self.config.seed, f"dropout:{step}:{self.parallel.rank}"))

    def estimate(self, sequences: int, length: int) -> MemoryEstimate:
        """What training will need at its peak, if its largest pass is that large."""
        several = self.parallel.world > 1
        if several and self.config.full_ft:
            return static_memory(self.model, self.optimizer)
        self.reseed(0)
        probe = partial(_probe, self)
        found = estimate_memory(self.model, self.optimizer, probe, sequences=sequences, length=length)
        # What is summed over ranks is a copy in fp32, beside the gradients themselves.
        return replace(found, step_gradients=found.gradients + found.step_gradients) if several else found


def pick_device(options: TrainingOptions) -> torch.device:
    """The device that `options` ask for. Raises Refused where it is not there."""
    there = torch.cuda.is_available()
    name = options.device if options.device != "auto" else ("cuda" if there else "cpu")
    if name.startswith("cuda") and not there:
        raise Refused("device cuda: this machine has no GPU that torch can use; train with device cpu")
    if name == "cuda":
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        torch.cuda.set_device(local_rank)
        return torch.device("cuda", local_rank)
    return torch.device(name)


def prepare_torch(options: TrainingOptions, device: torch.device) -> int:
    """Set torch's threads, and on a GPU the kernels that give equal bits for equal input; returns the threads."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    given = use_cores(processes=ranks_here) if options.threads is None else use_cores(options.threads)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cuda.matmul.allow_tf32 = True
    return given.threads


def set_up(
    config: TrialConfig, examples: list[Example], parallel: Parallel, threads: int, arguments: dict[str, Any]
) -> Run:
    """A run of `config` over `examples`, with fresh weights or those that `init_from` names."""
    model = new_model(
        config.base,
        _settings(config),
        seed=derive_seed(config.seed, "weights") % 2**63,
        context=Context.for_states(config.max_state or DEFAULT_MAX_STATE),
        attention="eager" if parallel.device.type == "mps" else "sdpa",
    )
    source = None if config.init_from is None else warm_start(model, config.init_from)
    feed = make_feed(config, examples, model.encoder, rows=model.hybrid)
    feed.measure()
    model.to(parallel.device)
    if config.checkpointing:
        _checkpoint_layers(model.backbone)
    if parallel.world > 1 and config.full_ft:
        shard(model.backbone, parallel)
    optimizer = Optimizer.over(
        model, lr=config.lr, head_lr=config.head_lr, weight_decay=config.weight_decay, parallel=parallel
    )
    batching = Batching(
        config.batch, config.accum, parallel.world, length_sort=bool(config.length_sort), ceiling=config.pass_tokens_max
    )
    per_epoch = batching.steps_per_epoch(len(examples))
    total = min(config.epochs * per_epoch, config.max_steps or config.epochs * per_epoch)
    return Run(
        config, parallel, model.train(), optimizer, feed, batching, LossWeights.of(config), OneCycle(total), per_epoch,
        snapshot_steps(config, total), threads, arguments, source,
    )  # fmt: skip


def make_feed(config: TrialConfig, examples: list[Example], encoder: Encoder, *, rows: bool) -> Feed:
    """The examples, encoded and augmented as `config` says."""
    permuted_share = config.perm_frac if config.perm_kl else 0.0
    return Feed(examples, encoder, Augmentation.of(config), config.seed, rows, permuted_share)


def training_config(run: Run, options: TrainingOptions) -> dict[str, Any]:
    """What `training_config.json` holds."""
    return {
        "args": run.arguments,
        "suite_sha256": options.suite_sha256,
        "base_revision": run.config.base_revision,
        "init_source": run.init_source,
        "ordinal_objective": "ranked_probability_score",
        "holdout": list(options.holdout),
        "threads": run.threads,
        "world": run.parallel.world,
        "torch": torch.__version__,
    }


def checkpoint_path(out_dir: Path) -> Path:
    """Where in a trial directory the checkpoint lies."""
    return out_dir / "checkpoint"


def _settings(config: TrialConfig) -> Settings:
    return Settings(
        lora=0 if config.full_ft else config.lora,
        lora_targets=config.lora_targets,
        head_dim=config.head_dim,
        option_isolation=bool(config.option_isolation),
        special_embeddings=bool(config.special_embeddings),
        weights_dtype=config.weights_dtype,
        base_revision=config.base_revision,
    )


def _checkpoint_layers(backbone: nn.Module) -> None:
    """Keep only what goes into each decoder layer, and compute the rest again in the backward pass."""
    for layer in decoder_layers(backbone):
        plain = layer.forward
        cast(Any, layer).forward = partial(checkpoint, plain, use_reentrant=False)


def _probe(run: Run, sequences: int, length: int) -> None:
    """A pass of the size asked for, made of the tokens of the first record."""
    fed = run.feed.probe(sequences, length)
    run_pass(run.model, fed, run.weights, step_records=len(fed.encodings), bf16=run.config.dtype == "bf16")
