"""What an epoch does to a record before the model sees it: none and distractor options, and the options' order.

Every record draws from a stream of its own, fixed by the run's seed, the epoch and the record's id, so that what
happens to it depends neither on the order of the records nor on how many ranks share them, and a continuation sees
what the uninterrupted run would have seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kev.data.draw import Draw
from kev.data.record import MAX_OPTIONS
from kev.records.plan import TrialConfig
from kev.train.examples import Ask, Example

NONE_OPTIONS = (
    "none: nothing listed here fits",
    "none_of_these",
    "none_of_the_above: every other option is wrong",
    "other: something that is not listed",
    "other",
    "something_else: the answer is not among these",
    "not_listed: the right one is missing from the list",
    "not_listed",
    "no_match: no option matches",
    "no_match",
    "unknown: cannot be placed under the others",
    "outside: falls outside all of these",
    "no_option_applies",
)
"""Varied, so that no wording by itself becomes the answer."""

DISTRACTORS = (
    "weather: a question about tomorrow's weather",
    "recipe: how a dish is prepared",
    "sports_result: the score of a match",
    "horoscope: a reading of the stars",
)
"""Options that no record of a desk or a policy is ever about."""

MIN_OPTIONS = 3
"""Fewest options from which the right one may be taken away."""

GRAIN = 2**32


@dataclass(frozen=True, slots=True)
class Augmentation:
    """How often each thing happens; see `TrialConfig` for the ranges."""

    none: float = 0.1
    none_distract: float = 0.12
    distract: float = 0.15
    none_pair: float = 0.0
    none_pair_max_state: int | None = None

    @classmethod
    def of(cls, config: TrialConfig) -> "Augmentation":
        return cls(
            config.p_none, config.p_none_distract, config.p_distract, config.p_none_pair, config.none_pair_max_state
        )


@dataclass(frozen=True, slots=True)
class Augmented:
    """A record as one epoch trains it: the record itself, and the two siblings of a none pair or nothing."""

    variants: tuple[Example, ...]

    @property
    def has_pair(self) -> bool:
        return len(self.variants) > 1


def augment(
    example: Example, augmentation: Augmentation, *, seed: int, epoch: int, state_tokens: int | None = None
) -> Augmented:
    """`example` as `epoch` trains it. `state_tokens` is needed where none pairs are held to short states."""
    draw = Draw(seed, f"{epoch}:{example.id}")
    changed = replace(example, asks=tuple(_augment_ask(draw, ask, augmentation) for ask in example.asks))
    limit = augmentation.none_pair_max_state
    if limit is not None:
        # A stream of its own, so that a limit changes which records have pairs and nothing else about any record.
        draw = Draw(seed, f"none_pair:{epoch}:{example.id}")
        if state_tokens is None or state_tokens > limit:
            return Augmented((changed,))
    if augmentation.none_pair == 0 or _uniform(draw) >= augmentation.none_pair:
        return Augmented((changed,))
    return Augmented((changed, *_none_pair(draw, example)))


def permuted(example: Example, *, seed: int, epoch: int, share: float) -> tuple[Example, tuple[tuple[int, ...], ...]]:
    """A second order of the options of some choices, and for each question where its options went.

    A choice of at least three options is permuted with probability `share`. The places of a question that was left
    alone are empty; of another, entry i is the place in the new order of what stood at i.
    """
    draw = Draw(seed, f"permuted:{epoch}:{example.id}")
    asks: list[Ask] = []
    places: list[tuple[int, ...]] = []
    for ask in example.asks:
        if ask.type != "choice" or len(ask.options) < MIN_OPTIONS or _uniform(draw) >= share:
            asks.append(ask)
            places.append(())
            continue
        order = draw.shuffled(range(len(ask.options)))
        asks.append(_reordered(ask, order))
        places.append(tuple(order.index(old) for old in range(len(order))))
    return replace(example, asks=tuple(asks)), tuple(places)


def _augment_ask(draw: Draw, ask: Ask, chances: Augmentation) -> Ask:
    if ask.type != "choice":
        return ask
    if ask.target is None:
        ask = _with_extra_option(draw, ask, chances)
    return _reordered(ask, draw.shuffled(range(len(ask.options))))


def _with_extra_option(draw: Draw, ask: Ask, chances: Augmentation) -> Ask:
    luck = _uniform(draw)
    if luck < chances.none and len(ask.options) >= MIN_OPTIONS:
        return _answer_none(draw, ask)
    if chances.none <= luck < chances.none + chances.none_distract:
        return _added(draw, ask, NONE_OPTIONS)
    first = chances.none + chances.none_distract
    if first <= luck < first + chances.distract:
        return _added(draw, ask, DISTRACTORS)
    return ask


def _none_pair(draw: Draw, example: Example) -> tuple[Example, ...]:
    eligible = [
        ask
        for ask in example.asks
        if ask.type == "choice" and ask.target is None and MIN_OPTIONS <= len(ask.options) < MAX_OPTIONS
    ]
    if not eligible:
        return ()
    ask = draw.pick(eligible)
    added = _added(draw, ask, NONE_OPTIONS)
    if added is ask:
        return ()
    order = draw.shuffled(range(len(added.options)))
    present = _reordered(added, order)
    absent = _without_answer(present, present.options.index(added.options[-1]))
    return replace(example, asks=(present,)), replace(example, asks=(absent,))


def _added(draw: Draw, ask: Ask, wordings: Sequence[str]) -> Ask:
    """`ask` with one of `wordings` as its last option; `ask` itself where it is full or says them all already."""
    names = {option.partition(":")[0] for option in ask.options}
    fresh = [wording for wording in wordings if wording.partition(":")[0] not in names]
    if len(ask.options) >= MAX_OPTIONS or not fresh:
        return ask
    return replace(ask, options=[*ask.options, draw.pick(fresh)], teacher=None)


def _answer_none(draw: Draw, ask: Ask) -> Ask:
    added = _added(draw, ask, NONE_OPTIONS)
    return ask if added is ask else _without_answer(added, len(added.options) - 1)


def _without_answer(ask: Ask, new_label: int) -> Ask:
    kept = [place for place in range(len(ask.options)) if place != ask.label]
    return replace(_picked(ask, kept), label=kept.index(new_label))


def _reordered(ask: Ask, order: Sequence[int]) -> Ask:
    return replace(_picked(ask, order), label=list(order).index(ask.label))


def _picked(ask: Ask, places: Sequence[int]) -> Ask:
    return replace(
        ask,
        options=[ask.options[place] for place in places],
        target=None if ask.target is None else tuple(ask.target[place] for place in places),
        teacher=None if ask.teacher is None else tuple(ask.teacher[place] for place in places),
    )


def _uniform(draw: Draw) -> float:
    return draw.below(GRAIN) / GRAIN
