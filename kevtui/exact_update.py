"""Prints the cells that changed, and only those.

Textual 8.2 prints each changed span from the left edge of its widget: in a table as wide as the screen, one changed
digit at the right costs the whole row, and two cost it twice.
"""

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate


class ExactUpdate(ChopsUpdate):
    """A partial update of the screen whose spans are cut at both ends."""

    @classmethod
    def of(cls, update: ChopsUpdate) -> "ExactUpdate":
        return cls(update.chops, update.spans, update.chop_ends)

    def render_segments(self, console: Console) -> str:
        sequences: list[str] = []
        for y, start, stop in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= stop or end <= start:
                    continue
                left, right = max(x, start), min(end, stop)
                if (left, right) != (x, end):
                    strip = strip.crop(left - x, right - x)
                sequences += [Control.move_to(left, y).segment.text, strip.render(console)]
        return "".join(sequences)
