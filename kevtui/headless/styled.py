"""A line of text in pieces, each of one style, and how it reaches a terminal.

It is what rich's Text is, for the little that tables need: rich takes a sixth of the time that `--once` has.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

SGR: Final[dict[str, str]] = {
    "bold": "1", "dim": "2", "cyan": "36", "green": "32", "yellow": "33",
    "bold red": "1;31", "bold yellow": "1;33",
}  # fmt: skip
"""The parameters of the escape sequence that begins each style; all of the first eight colours."""

RESET: Final = "\x1b[0m"


@dataclass(slots=True)
class Text:
    """Pieces of (words, style), "" for no style. The words are safe for a terminal already."""

    pieces: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, *parts: "str | Text") -> "Text":
        """One line of several."""
        line = cls()
        for part in parts:
            line.append(part)
        return line

    @property
    def plain(self) -> str:
        return "".join([words for words, _ in self.pieces])

    @property
    def width(self) -> int:
        """Cells of a terminal."""
        return sum(width_of(words) for words, _ in self.pieces)

    def append(self, part: "str | Text") -> None:
        if isinstance(part, Text):
            self.pieces += part.pieces
        elif part:
            self.pieces.append((part, ""))

    def stripped(self) -> "Text":
        """Without white space at its end."""
        pieces = list(self.pieces)
        while pieces:
            words, style = pieces.pop()
            if words := words.rstrip():
                pieces.append((words, style))
                break
        return Text(pieces)

    def folded(self, width: int) -> Iterator["Text"]:
        """Lines of at most `width` cells, all but the first indented as this one is; broken at spaces if it can be."""
        if self.width <= width:
            yield self.stripped()
            return
        plain = self.plain
        indent = min(len(plain) - len(plain.lstrip(" ")), max(0, width - 10))
        margin = " " * indent
        line, used, begun = Text.of(margin), indent, False
        for word, style in _words(self.pieces, indent):
            if begun and word != " " and used + width_of(word) > width:
                yield line.stripped()
                line, used = Text.of(margin), indent
            for piece in _cut(word, width - indent):
                if used + width_of(piece) > width:
                    if piece == " ":
                        continue
                    yield line.stripped()
                    line, used = Text.of(margin), indent
                line.pieces.append((piece, style))
                used, begun = used + width_of(piece), True
        yield line.stripped()

    def escaped(self) -> str:
        """With the escape sequences of its styles."""
        return "".join([f"\x1b[{SGR[style]}m{words}{RESET}" if style else words for words, style in self.pieces])


def width_of(words: str) -> int:
    """Cells that `words` take in a terminal."""
    if words.isascii():
        return len(words)
    from rich.cells import cell_len

    return cell_len(words)


def _words(pieces: Iterable[tuple[str, str]], skip: int) -> Iterator[tuple[str, str]]:
    """Words and single spaces, without the first `skip` characters."""
    for words, style in pieces:
        left = words[skip:]
        skip = max(0, skip - len(words))
        first = True
        for word in left.split(" "):
            if not first:
                yield " ", style
            if word:
                yield word, style
            first = False


def _cut(word: str, width: int) -> Iterator[str]:
    """`word` in pieces of at most `width` cells."""
    if width_of(word) <= width:
        yield word
        return
    piece, used = "", 0
    for character in word:
        cells = width_of(character)
        if piece and used + cells > width:
            yield piece
            piece, used = "", 0
        piece, used = piece + character, used + cells
    yield piece
