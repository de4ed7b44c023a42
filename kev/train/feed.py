"""From places in the training records to what one pass of the model takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kev.errors import Refused
from kev.model.context import ContextOverflow
from kev.model.encoding import Encoder, Encoding
from kev.train.augment import Augmentation, augment, permuted
from kev.train.examples import Ask, Example

MOST_NAMED = 3
RECENT = 256
SHUFFLED_ONLY = Augmentation(none=0.0, none_distract=0.0, distract=0.0)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a record costs: its sequences, the length of the longest, and the tokens of its state."""

    sequences: int
    longest: int
    state_tokens: int


@dataclass(frozen=True, slots=True)
class PaddedCost:
    """The padded tokens of a pass over records of known shapes."""

    shapes: Sequence[Shape]

    def __call__(self, places: Sequence[int]) -> int:
        sequences, longest = self.grid(places)
        return sequences * longest

    def grid(self, places: Sequence[int]) -> tuple[int, int]:
        """Sequences of the pass, and the length that all are padded to."""
        chosen = [self.shapes[place] for place in places]
        return sum(shape.sequences for shape in chosen), max((shape.longest for shape in chosen), default=0)


@dataclass(frozen=True, slots=True)
class Fed:
    """The input of one pass, flat over its questions.

    `shares[q]` is the weight of question q's loss, such that the weighted sum is the pass's part of the step's loss:
    a record's questions share its weight, and the siblings of a none pair share their records' weight.
    """

    encodings: list[Encoding]
    asks: list[Ask]
    shares: list[float]
    records: int
    permuted: list[Encoding] = field(default_factory=list)
    """The same records in a second order of options, where that is compared."""
    permuted_questions: list[int] = field(default_factory=list)
    """The place of each question of `permuted` in `asks`."""
    moved: list[tuple[int, ...]] = field(default_factory=list)


@dataclass(slots=True)
class Feed:
    """The training records, encoded as an epoch trains them."""

    examples: Sequence[Example]
    encoder: Encoder
    augmentation: Augmentation
    seed: int
    rows: bool
    """Whether the backbone reads every question as a row of its own."""
    permuted_share: float = 0.0
    """Share of the choices that are also asked in a second order; 0 where that is not compared."""
    shapes: list[Shape] = field(default_factory=list)
    _recent: dict[tuple[int, int], list[tuple[Example, Encoding]]] = field(default_factory=dict)
    tally: Counter[str] = field(default_factory=Counter)
    """Records left as they are because an augmented form would not fit the context."""

    def measure(self) -> None:
        """Encode every record once. Raises Refused naming those that do not fit the context."""
        too_long: list[str] = []
        for example in self.examples:
            try:
                self.shapes.append(self._shape([self._encode(example)]))
            except ContextOverflow as error:
                too_long.append(str(error))
        if too_long:
            named = "; ".join(too_long[:MOST_NAMED])
            more = f"; and {len(too_long) - MOST_NAMED:,} more" if len(too_long) > MOST_NAMED else ""
            raise Refused(f"{len(too_long):,} of {len(self.examples):,} records do not fit the context: {named}{more}")

    def shapes_of_epoch(self, epoch: int) -> list[Shape]:
        """The exact shapes of an epoch, siblings and added options included."""
        return [self._shape([encoding for _, encoding in self._variants(place, epoch)])
                for place in range(len(self.examples))]  # fmt: skip

    def pairs_of_epoch(self, epoch: int) -> int:
        """How many records have a none pair in an epoch."""
        return sum(
            augment(example, self.augmentation, seed=self.seed, epoch=epoch, state_tokens=shape.state_tokens).has_pair
            for example, shape in zip(self.examples, self.shapes, strict=True)
        )

    def feed(self, places: Sequence[int], *, epoch: int, step_records: int, batch: Sequence[int] | None = None) -> Fed:
        """The pass over `places`, part of a micro-batch `batch` (itself, unless given) of a step of `step_records`."""
        whole = places if batch is None else batch
        by_record = [self._variants(place, epoch) for place in places]
        # Variants are counted over the micro-batch, so that splitting it into passes changes nothing.
        counted = by_record if batch is None else [self._variants(place, epoch) for place in batch]
        variants = sum(len(found) for found in counted)
        share = len(whole) / (variants * step_records)
        fed = Fed([], [], [], len(places))
        for found in by_record:
            first = len(fed.asks)
            for example, encoding in found:
                fed.encodings.append(encoding)
                fed.asks.extend(example.asks)
                fed.shares.extend([share / len(example.asks)] * len(example.asks))
            if self.permuted_share:
                self._add_permuted(fed, found[0][0], epoch, first)
        return fed

    def probe(self, sequences: int, length: int) -> Fed:
        """A pass of `sequences` sequences of `length` tokens, at least 8, to measure what such a pass needs."""
        encoding, ask = _probe_record(self.encoder, max(length, PROBE_BRANCH + 1))
        share = 1 / sequences
        return Fed([encoding] * sequences, [ask] * sequences, [share] * sequences, sequences)

    def _add_permuted(self, fed: Fed, example: Example, epoch: int, first: int) -> None:
        other, moved = permuted(example, seed=self.seed, epoch=epoch, share=self.permuted_share)
        if any(moved):
            fed.permuted.append(self._encode(other))
            fed.permuted_questions.extend(range(first, first + len(other.asks)))
            fed.moved.extend(moved)

    def _variants(self, place: int, epoch: int) -> list[tuple[Example, Encoding]]:
        # The passes of a micro-batch ask for the same records to count their siblings.
        found = self._recent.get((place, epoch))
        if found is None:
            if len(self._recent) >= RECENT:
                self._recent.clear()
            found = self._recent[place, epoch] = self._make_variants(place, epoch)
        return found

    def _make_variants(self, place: int, epoch: int) -> list[tuple[Example, Encoding]]:
        example = self.examples[place]
        tokens = self.shapes[place].state_tokens if self.shapes else None
        found = augment(example, self.augmentation, seed=self.seed, epoch=epoch, state_tokens=tokens)
        try:
            return [(variant, self._encode(variant)) for variant in found.variants]
        except ContextOverflow:
            # Suites leave room for an added option; a record from elsewhere that has none is trained unaugmented.
            self.tally["unaugmented"] += 1
            plain = augment(example, SHUFFLED_ONLY, seed=self.seed, epoch=epoch)
            return [(variant, self._encode(variant)) for variant in plain.variants]

    def _encode(self, example: Example) -> Encoding:
        return self.encoder.encode(example.state, example.asks, name=f"record {example.id}")

    def _shape(self, encodings: Sequence[Encoding]) -> Shape:
        sequences = sum(len(e.decide_idx) for e in encodings) if self.rows else len(encodings)
        longest = max(e.longest_row if self.rows else len(e) for e in encodings)
        return Shape(sequences, longest, encodings[0].state_tokens)


PROBE_BRANCH = 8


def _probe_record(encoder: Encoder, length: int) -> tuple[Encoding, Ask]:
    marks = encoder.delimiters
    state = length - PROBE_BRANCH
    option = [marks.option_open, marks.state, marks.option_close]
    branch = [marks.question, *option, *option, marks.decide]
    places = np.arange(length)
    encoding = Encoding(
        name="probe",
        ids=np.array([marks.state] * state + branch, dtype=np.int64),
        seg=(places >= state).astype(np.int64),
        pos=places,
        opt=np.array([-1] * (state + 1) + [0] * 3 + [1] * 3 + [-2], dtype=np.int64),
        decide_idx=places[-1:],
        close_idx=state + np.array([3, 6]),
        option_counts=np.array([2]),
        labels=None,
        state_length=state,
        state_tokens=state,
        option_isolation=encoder.option_isolation,
    )
    return encoding, Ask("probe", "noul", "", ["no", "yes"], 0)
