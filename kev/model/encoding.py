"""A record as token ids: the state once, then every question as a branch of it.

    state   <state> tokens
    branch  <question> instructions, then <open> option <close> for each option, then <decide>

Positions restart at the end of the state for every branch, and no branch sees another (kev.model.mask), so what is
answered to one question cannot depend on which others are asked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from kev import files
from kev.data.record import DataRecord
from kev.data.render import render
from kev.errors import DamagedFile, NotFound, Refused
from kev.model.context import TRAINING, Context, ContextOverflow
from kev.model.delimiters import Delimiters

STATE_SEGMENT = 0
OUTSIDE_OPTIONS = -1
DECIDE = -2

REMEMBERED_TEXTS = 16_384
"""How many instructions and options are kept with their ids: they come back in every epoch, and in many records."""

REMEMBERED_LENGTH = 2_000
"""Characters of the longest of them, so that no caller fills the memory of a server with texts of his own."""

Ids = NDArray[np.int64]


class Asked(Protocol):
    """A question as the encoder needs it; `kev.data.record.Question` is one."""

    @property
    def instructions(self) -> Any:
        """Any JSON."""

    @property
    def options(self) -> list[str]:
        """The options' texts, in scoring order."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """A packed record of L tokens, Q questions and N options in all.

    `ids`, `seg`, `pos` and `opt` have length L. `seg` is 0 in the state and k in the k-th question's branch; `opt` is j
    inside the j-th option of a branch, its two delimiters included, -2 at a decide token and -1 elsewhere.
    `decide_idx` [Q] and `close_idx` [N] are places in `ids`; `option_counts` [Q] says how `close_idx` divides.
    """

    name: str
    ids: Ids
    seg: Ids
    pos: Ids
    opt: Ids
    decide_idx: Ids
    close_idx: Ids
    option_counts: Ids
    labels: tuple[int, ...] | None
    state_length: int
    """Tokens of the state in `ids`, its delimiter included."""
    state_tokens: int
    """The same for the whole state, before anything was cut."""
    option_isolation: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def state_truncated(self) -> bool:
        """Whether the end of the state was cut off."""
        return self.state_length < self.state_tokens

    @property
    def opt_idx(self) -> list[list[int]]:
        """For every question, the places of its options' closing tokens."""
        ends = np.cumsum(self.option_counts)[:-1]
        return [part.tolist() for part in np.split(self.close_idx, ends)]

    @property
    def branches(self) -> list[slice]:
        """For every question, where its branch lies; the decide token is the last of it."""
        ends = (self.decide_idx + 1).tolist()
        return [slice(start, end) for start, end in zip([self.state_length, *ends], ends, strict=False)]

    def only(self, first: int, stop: int) -> "Encoding":
        """The record with its questions `first` to `stop` alone, as if no other had been asked."""
        branches = self.branches[first:stop]
        kept = np.r_[0 : self.state_length, branches[0].start : branches[-1].stop]
        shift = branches[0].start - self.state_length
        options = slice(int(self.option_counts[:first].sum()), int(self.option_counts[:stop].sum()))
        return replace(
            self,
            ids=self.ids[kept],
            seg=np.where(self.seg[kept] == STATE_SEGMENT, STATE_SEGMENT, self.seg[kept] - first),
            pos=self.pos[kept],
            opt=self.opt[kept],
            decide_idx=self.decide_idx[first:stop] - shift,
            close_idx=self.close_idx[options] - shift,
            option_counts=self.option_counts[first:stop],
            labels=None if self.labels is None else self.labels[first:stop],
        )

    @property
    def longest_row(self) -> int:
        """Tokens of the state and the longest branch."""
        return self.state_length + max((branch.stop - branch.start for branch in self.branches), default=0)


class Encoder:
    """Turns states and questions into encodings with one tokenizer and one context.

    A state longer than the context admits is refused, or cut at its end where `strict` is false; a branch that is too
    long is refused either way.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        delimiters: Delimiters,
        *,
        context: Context = TRAINING,
        strict: bool = True,
        option_isolation: bool = False,
    ) -> None:
        tokenizer.no_truncation()  # a tokenizer.json may carry limits of its own
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # special tokens in text are text, also those that are no delimiters
        self.tokenizer = tokenizer
        self.delimiters = delimiters
        self.context = context
        self.strict = strict
        self.option_isolation = option_isolation
        self._cached_tokens = lru_cache(maxsize=REMEMBERED_TEXTS)(self._tokens)

    @classmethod
    def from_directory(cls, directory: Path, **settings: Any) -> Self:
        """An encoder with the tokenizer that lies in `directory`. Raises NotFound, DamagedFile or Refused."""
        path = directory / "tokenizer.json"
        try:
            data = files.read_bytes(path)
        except NotFound:
            raise NotFound(f"{path}: no such file; a base or checkpoint carries its tokenizer in this form") from None
        try:
            tokenizer = Tokenizer.from_buffer(data)
        except Exception as error:  # the Rust parser raises plain Exception
            raise DamagedFile(path, f"not a tokenizer{_why_not(data, error)}") from None
        return cls(tokenizer, Delimiters.find(tokenizer.token_to_id, str(path)), **settings)

    def within(self, context: Context, *, strict: bool | None = None) -> "Encoder":
        """This encoder with another context, and another strictness if given."""
        return Encoder(
            self.tokenizer,
            self.delimiters,
            context=context,
            strict=self.strict if strict is None else strict,
            option_isolation=self.option_isolation,
        )

    def encode_record(self, record: DataRecord) -> Encoding:
        """A record of a partition, with its labels. Raises ContextOverflow, naming the record."""
        questions = list(record.questions.values())
        encoding = self.encode(record.state, questions, name=record.meta.id)
        return replace(encoding, labels=tuple(question.label_index for question in questions))

    def encode(self, state: Any, questions: Sequence[Asked], *, name: str = "the request") -> Encoding:
        """`state`, any JSON, and the questions about it; `name` is what messages call them.

        Raises ContextOverflow, and Refused where there is no question or a question without options.
        """
        if not questions or not all(question.options for question in questions):
            raise Refused(f"{name}: nothing to answer; a record has questions, and every question has options")
        state_ids, state_tokens = self._state(state, name)
        branches = [self._branch(question) for question in questions]
        self._check(state_ids, branches, state_tokens, name)
        return self._pack(name, state_ids, state_tokens, branches)

    def count_state_tokens(self, state: Any) -> int:
        """Tokens of the whole state, its delimiter included."""
        return 1 + len(self._tokens(render(state)))

    def _state(self, state: Any, name: str) -> tuple[list[int], int]:
        ids = [self.delimiters.state, *self._tokens(render(state))]
        limit = self.context.max_state
        if len(ids) > limit and self.strict:
            raise ContextOverflow(
                f"{name}: a state of {len(ids):,} tokens, over the limit of {limit:,}; shorten it, or raise max_state",
                state_tokens=len(ids),
                max_state=limit,
            )
        return ids[:limit], len(ids)

    def _branch(self, question: Asked) -> "_Branch":
        ids = [self.delimiters.question, *self._remembered(render(question.instructions))]
        first_option = len(ids)
        closes = []
        for option in question.options:
            ids += [self.delimiters.option_open, *self._remembered(option), self.delimiters.option_close]
            closes.append(len(ids) - 1)
        ids.append(self.delimiters.decide)
        return _Branch(ids, first_option, closes)

    def _remembered(self, text: str) -> list[int]:
        return self._cached_tokens(text) if len(text) <= REMEMBERED_LENGTH else self._tokens(text)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(self.delimiters.neutralise(text), add_special_tokens=False).ids
        if not set(self.delimiters.ids).isdisjoint(ids):
            # Not reachable with the tokenizers known; a model must never read what a text claims to be a delimiter.
            raise Refused("the tokenizer makes a delimiter out of plain text; it cannot be used with this model")
        return ids

    def _check(self, state: list[int], branches: "list[_Branch]", state_tokens: int, name: str) -> None:
        room = self.context.max_branch - len(state)
        packed = len(state) + sum(len(branch.ids) for branch in branches)
        reason = next(
            (
                f"question {number} takes {len(branch.ids):,} tokens where {max(0, room):,} are left of max_branch "
                f"({self.context.max_branch:,} for state and question)"
                for number, branch in enumerate(branches, start=1)
                if len(branch.ids) > room
            ),
            f"{packed:,} tokens with all its questions, over max_packed ({self.context.max_packed:,})"
            if packed > self.context.max_packed
            else None,
        )
        if reason:
            raise ContextOverflow(f"{name}: {reason}", state_tokens=state_tokens, max_state=self.context.max_state)

    def _pack(self, name: str, state: list[int], state_tokens: int, branches: "list[_Branch]") -> Encoding:
        length = len(state)
        starts = np.cumsum([length, *(len(branch.ids) for branch in branches)])
        state_positions = np.arange(length, dtype=np.int64)
        laid_out = [branch.layout(length, isolated=self.option_isolation) for branch in branches]
        return Encoding(
            name=name,
            ids=np.array([*state, *(token for branch in branches for token in branch.ids)], dtype=np.int64),
            seg=np.repeat(np.arange(len(branches) + 1), np.diff(starts, prepend=0)),
            pos=np.concatenate([state_positions, *(positions for positions, _ in laid_out)]),
            opt=np.concatenate([np.full(length, OUTSIDE_OPTIONS), *(options for _, options in laid_out)]),
            decide_idx=starts[1:] - 1,
            close_idx=np.concatenate(
                [np.array(branch.closes) + start for branch, start in zip(branches, starts, strict=False)]
            ),
            option_counts=np.array([len(branch.closes) for branch in branches], dtype=np.int64),
            labels=None,
            state_length=length,
            state_tokens=state_tokens,
            option_isolation=self.option_isolation,
        )


@dataclass(frozen=True, slots=True)
class _Branch:
    ids: list[int]
    first_option: int
    closes: list[int]

    def spans(self) -> Iterator[slice]:
        start = self.first_option
        for close in self.closes:
            yield slice(start, close + 1)
            start = close + 1

    def layout(self, offset: int, *, isolated: bool) -> tuple[Ids, Ids]:
        """Positions and option indices of the branch's tokens, behind a state of `offset` tokens.

        Isolated options all begin at one position, and the decide token follows the longest.
        """
        positions = np.arange(offset, offset + len(self.ids), dtype=np.int64)
        options = np.full(len(self.ids), OUTSIDE_OPTIONS, dtype=np.int64)
        options[-1] = DECIDE
        begin = offset + self.first_option
        longest = 0
        for number, span in enumerate(self.spans()):
            options[span] = number
            longest = max(longest, span.stop - span.start)
            if isolated:
                positions[span] = np.arange(begin, begin + span.stop - span.start)
        if isolated:
            positions[-1] = begin + longest
        return positions, options


def _why_not(data: bytes, error: Exception) -> str:
    """What stands in place of a tokenizer, or `error` where it is JSON at least."""
    try:
        files.parse_json(data)
    except ValueError as reason:
        return f": {reason}"
    return f" ({error})"
