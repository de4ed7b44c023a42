"""Everything that is made before the first answer: the checkpoint as a policy, its reference, optimizer and plan."""

import hashlib
from dataclasses import dataclass
from typing import Any

from kev import files
from kev.checkpoint import HEAD
from kev.model.context import Context
from kev.model.decision_model import DecisionModel
from kev.model.layout import find_layout
from kev.model.loading import load_checkpoint, open_head
from kev.model.places import locate
from kev.rl.config import RlConfig
from kev.rl.reference import Reference
from kev.torch_files import MAX_BYTES
from kev.train.augment import Augmentation
from kev.train.batches import Batching
from kev.train.examples import Example
from kev.train.feed import Feed
from kev.train.optimizer import Optimizer
from kev.train.parallel import Parallel
from kev.train.schedule import OneCycle
from kev.train.settings import DEFAULT_MAX_STATE, digest

SHUFFLED_ONLY = Augmentation(none=0.0, none_distract=0.0, distract=0.0)


@dataclass(slots=True)
class Policy:
    """A checkpoint that is ready to answer and to learn."""

    config: RlConfig
    model: DecisionModel
    reference: Reference | None
    optimizer: Optimizer
    feed: Feed
    batching: Batching
    schedule: OneCycle
    parallel: Parallel
    threads: int
    arguments: dict[str, Any]

    @property
    def batches_per_epoch(self) -> int:
        return self.batching.steps_per_epoch(len(self.feed.examples))


def set_up(config: RlConfig, examples: list[Example], parallel: Parallel, threads: int) -> Policy:
    """The policy of the checkpoint that `config` names, over `examples`. Raises what opening one raises."""
    directory = locate(config.init_from)
    layout = find_layout(directory, open_head(directory))
    context = Context.for_states(config.max_state or DEFAULT_MAX_STATE)
    # In evaluation mode: the answers are those that are served, at the temperature they are served with, and without
    # dropout, under which the ratio of two passes would not be 1 for equal weights.
    model = load_checkpoint(config.init_from, merge=False, context=context, device=str(parallel.device)).eval()
    feed = Feed(examples, model.encoder, SHUFFLED_ONLY, config.seed, model.hybrid)
    feed.measure()
    optimizer = Optimizer.over(
        model, lr=config.lr, head_lr=config.head_lr, weight_decay=config.weight_decay, parallel=parallel
    )
    reference = Reference.of(slot.parameter for slot in optimizer.slots()) if config.kl_w else None
    batching = Batching(config.batch, 1)
    steps = config.epochs * batching.steps_per_epoch(len(examples)) * config.updates
    arguments = {
        **config.model_dump(mode="json"),
        "records": len(examples),
        "records_sha256": digest(examples),
        # The reference is read again by a continuation, so it must be the same.
        "init_weights_sha256": layout.sha256,
        "init_head_sha256": hashlib.sha256(files.read_bytes(directory / HEAD, limit=MAX_BYTES)).hexdigest(),
        "temperature": model.temperature,
    }
    return Policy(config, model, reference, optimizer, feed, batching, OneCycle(steps), parallel, threads, arguments)
