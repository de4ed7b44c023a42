"""Curves as rows of text: braille dots where the terminal has them, ASCII signs where it has not. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Sample = tuple[float, float | None]
"""(x, y); a y that is None, NaN or infinite is a gap in the curve, and stays one."""

BRAILLE = 0x2800
DOTS = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)
"""The bit of each dot in a braille cell: four of its left column from the top, then four of the right one."""

CELLS = [" "] + [
    chr(BRAILLE + sum(bit for place, bit in enumerate(DOTS) if dots >> place & 1)) for dots in range(1, 256)
]
"""The character for four dots of the left column and, as the next four bits, four of the right one."""

TICK_WIDTH = 7
"""Columns of the y axis' figures."""

SMALLEST = (TICK_WIDTH + 5, 5)
"""Width and height below which there is no room for a curve with axes."""


def plot(
    samples: Sequence[Sample],
    width: int,
    height: int,
    *,
    x: str,
    y: str,
    levels: Sequence[float] = (),
    ascii_only: bool = False,
) -> list[str]:
    """`height` rows of `width` characters: `y`, what the curve shows and in which unit, over the curve through
    `samples` with both axes; `x` is the unit of the lower one. Each of `levels`, all finite, is a dotted line.

    The scale fits the finite values and the levels; where there is none, or no room, the rows say so.
    """
    if width <= 0 or height <= 0:
        return []
    finite = [(at, value) for at, value in samples if math.isfinite(at) and value is not None and math.isfinite(value)]
    if not finite:
        return words(f"{y}: no figures yet", width, height)
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return words(f"{figure(finite[-1][1])} {y}", width, height)
    frame = _Frame.around(finite, levels, width - TICK_WIDTH - 1, height - 3, ascii_only=ascii_only)
    for level in levels:
        frame.dotted(level)
    _draw(frame, samples)
    return [y[:width].ljust(width), *_with_y_axis(frame), *_x_axis(frame, x)]


def figure(value: float) -> str:
    """`value` in at most `TICK_WIDTH` characters: "7.9", "0.00031", "1.2e-09"."""
    if value == 0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        text = f"{value:.{max(0, 3 - max(1, math.floor(math.log10(size)) + 1))}f}" if size >= 1 else f"{value:.3g}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text if len(text) <= TICK_WIDTH else f"{value:.2g}"
    text = _short(f"{value:.1e}")
    return text if len(text) <= TICK_WIDTH else _short(f"{value:.0e}")


def _short(text: str) -> str:
    mantissa, exponent = text.split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


@dataclass(slots=True)
class _Frame:
    """The area of the curve: `columns` by `rows` characters, each of `across` by `down` dots."""

    columns: int
    rows: int
    across: int
    down: int
    left: float
    right: float
    low: float
    high: float
    dots: list[int]
    """For each column of dots its rows as bits, the lowest bit at the top: a stroke of any height is one operation."""

    @classmethod
    def around(
        cls,
        finite: Sequence[tuple[float, float]],
        levels: Sequence[float],
        columns: int,
        rows: int,
        *,
        ascii_only: bool,
    ) -> "_Frame":
        across, down = (1, 1) if ascii_only else (2, 4)
        left, right = min(at for at, _ in finite), max(at for at, _ in finite)
        values = [*(value for _, value in finite), *levels]
        low, high = min(values), max(values)
        if low == high:
            # A flat curve lies in the middle, with a scale that says how flat.
            margin = abs(low) * 0.05 or 1.0
            low, high = max(low - margin, -1.7e308), min(high + margin, 1.7e308)
        return cls(columns, rows, across, down, left, right, low, high, [0] * (columns * across))

    def place(self, at: float, value: float) -> tuple[int, int]:
        """The dot of a sample, counted from the top left."""
        wide, tall = self.columns * self.across - 1, self.rows * self.down - 1
        return round(_share(at, self.left, self.right) * wide), round((1 - _share(value, self.low, self.high)) * tall)

    def dotted(self, value: float) -> None:
        """A dot in every third column, at the height of `value`."""
        _, row = self.place(self.left, value)
        for column in range(0, len(self.dots), 3):
            self.stroke(column, row, row)

    def stroke(self, column: int, start: int, end: int) -> None:
        """Set the dots of `column` from row `start` to row `end`, in either order."""
        top, bottom = (start, end) if start <= end else (end, start)
        self.dots[column] |= ((1 << (bottom - top + 1)) - 1) << top

    def line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        (x0, y0), (x1, y1) = (start, end) if start <= end else (end, start)
        if x0 == x1:
            self.stroke(x0, y0, y1)
            return
        row = y0
        for column in range(x0, x1 + 1):
            # Each column has its part of the slope, as far as half way to the next one.
            until = y1 if column == x1 else round(y0 + (y1 - y0) * (column - x0 + 0.5) / (x1 - x0))
            self.stroke(column, row, until)
            row = until

    def text(self, row: int) -> str:
        if self.down == 1:
            return "".join("*" if dots >> row & 1 else " " for dots in self.dots)
        shift = 4 * row
        return "".join(
            CELLS[left >> shift & 15 | (right >> shift & 15) << 4]
            for left, right in zip(self.dots[::2], self.dots[1::2], strict=True)
        )


def _share(value: float, low: float, high: float) -> float:
    """Where `value` lies between `low` and `high`, from 0 to 1; halves first, for the span itself may overflow."""
    span = high / 2 - low / 2
    return 0.0 if span <= 0 else min(1.0, max(0.0, (value / 2 - low / 2) / span))


def _draw(frame: _Frame, samples: Sequence[Sample]) -> None:
    """Join neighbouring samples; a gap between them stays open."""
    before: tuple[int, int] | None = None
    for at, value in samples:
        if value is None or not math.isfinite(value) or not math.isfinite(at):
            before = None
            continue
        here = frame.place(at, value)
        if here != before:
            frame.line(before or here, here)
            before = here


def _with_y_axis(frame: _Frame) -> list[str]:
    bar, tick = ("│", "┤") if frame.down == 4 else ("|", "+")
    marked = {0: frame.high, frame.rows - 1: frame.low}
    if frame.rows >= 5:
        middle = frame.rows // 2
        # In halves, for the span itself may overflow.
        marked[middle] = 2 * (frame.high / 2 - (frame.high / 2 - frame.low / 2) * (middle / (frame.rows - 1)))
    return [
        f"{figure(marked[row]) if row in marked else '':>{TICK_WIDTH}}{tick if row in marked else bar}{frame.text(row)}"
        for row in range(frame.rows)
    ]


def _x_axis(frame: _Frame, unit: str) -> list[str]:
    corner, line = ("└", "─") if frame.down == 4 else ("+", "-")
    left, right = figure(frame.left), f"{figure(frame.right)} {unit}"[: frame.columns]
    if len(left) + len(right) + 1 > frame.columns:
        left = ""
    labels = f"{left}{right:>{frame.columns - len(left)}}"
    return [f"{' ' * TICK_WIDTH}{corner}{line * frame.columns}", f"{' ' * (TICK_WIDTH + 1)}{labels}"]


def words(text: str, width: int, height: int) -> list[str]:
    """`text` in the middle of `height` rows of `width` characters."""
    rows = [" " * width] * height
    if rows:
        rows[height // 2] = text[:width].center(width)
    return rows
