"""The five special tokens that shape a record, and text that cannot imitate them.

They are tokens that the base's tokenizer already has and ordinary text never uses, so no embedding is added.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kev.errors import Refused

FAMILIES: tuple[tuple[str, str, str, str, str], ...] = (
    ("<|fim_prefix|>", "<|fim_middle|>", "<|box_start|>", "<|box_end|>", "<|fim_suffix|>"),
    ("<repo_name>", "<file_sep>", "<issue_start>", "<issue_closed>", "<jupyter_output>"),
    ("<unused0>", "<unused1>", "<unused2>", "<unused3>", "<unused4>"),
    (
        "<|reserved_special_token_0|>",
        "<|reserved_special_token_1|>",
        "<|reserved_special_token_2|>",
        "<|reserved_special_token_3|>",
        "<|reserved_special_token_4|>",
    ),
)
"""State, question, option open, option close, decide: for tokenizers of Qwen, SmolLM2 and StarCoder, Gemma, Llama 3.
The first family that a tokenizer has in full is used; released checkpoints are all of the first."""

_SPECIAL_FORM = re.compile(r"<\|(\w+)\|>")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BROKEN_BAR = "\N{BROKEN BAR}"
OTHER_BRACKET = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def neutralise(text: str) -> str:
    """`text` with `<|name|>` written with broken bars, as released models saw it in training.

    Halves of surrogate pairs, which no tokenizer takes, become the replacement character.
    """
    return _SPECIAL_FORM.sub(rf"<{BROKEN_BAR}\1{BROKEN_BAR}>", _LONE_SURROGATE.sub(REPLACEMENT, text))


@dataclass(frozen=True, slots=True)
class Delimiters:
    """Token ids of the five roles, and the texts that stand for them."""

    state: int
    question: int
    option_open: int
    option_close: int
    decide: int
    names: tuple[str, str, str, str, str] = FAMILIES[0]

    @classmethod
    def find(cls, token_id: Callable[[str], int | None], where: str) -> Self:
        """The delimiters of a tokenizer that maps a token to its id or None. Raises Refused, naming `where`."""
        for family in FAMILIES:
            match [token_id(name) for name in family]:
                case [int(state), int(question), int(option_open), int(option_close), int(decide)]:
                    return cls(state, question, option_open, option_close, decide, family)
        wanted = " ".join(FAMILIES[0])
        raise Refused(f"{where}: its tokenizer has no set of delimiter tokens; add these as special tokens: {wanted}")

    @property
    def ids(self) -> tuple[int, ...]:
        """All five, in role order."""
        return (self.state, self.question, self.option_open, self.option_close, self.decide)

    def neutralise(self, text: str) -> str:
        """`text` with everything that a tokenizer could take for one of these delimiters written so that it cannot."""
        text = neutralise(text)
        for name in self.names:
            text = text.replace(name, OTHER_BRACKET + name[1:])
        return text
