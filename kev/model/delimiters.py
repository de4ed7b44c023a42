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
_OTHER_FORM = re.compile("|".join(re.escape(name) for family in FAMILIES for name in family if "|" not in name))
BROKEN_BAR = "\N{BROKEN BAR}"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def neutralise(text: str) -> str:
    """`text` with everything that a tokenizer could take for a delimiter written so that it cannot.

    `<|name|>` gets broken bars, as released models saw in training; a delimiter of another form gets another bracket.
    Halves of surrogate pairs, which no tokenizer takes, become the replacement character.
    """
    text = _LONE_SURROGATE.sub(REPLACEMENT, text)
    text = _SPECIAL_FORM.sub(rf"<{BROKEN_BAR}\1{BROKEN_BAR}>", text)
    return _OTHER_FORM.sub(lambda match: f"\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}{match.group()[1:]}", text)


@dataclass(frozen=True, slots=True)
class Delimiters:
    """Token ids of the five roles."""

    state: int
    question: int
    option_open: int
    option_close: int
    decide: int

    @classmethod
    def find(cls, token_id: Callable[[str], int | None], where: str) -> Self:
        """The delimiters of a tokenizer that maps a token to its id or None. Raises Refused, naming `where`."""
        for family in FAMILIES:
            ids = [found for name in family if (found := token_id(name)) is not None]
            if len(ids) == len(family):
                return cls(*ids)
        wanted = " ".join(FAMILIES[0])
        raise Refused(f"{where}: its tokenizer has no set of delimiter tokens; add these as special tokens: {wanted}")

    @property
    def ids(self) -> tuple[int, ...]:
        """All five, in role order."""
        return (self.state, self.question, self.option_open, self.option_close, self.decide)
