"""From a key press to the change of the screen it asks for, over a pseudo-terminal, while everything else is busy."""

import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "terminal"))

import pyte
from pseudo_terminal import PseudoTerminal

Shown = Callable[[pyte.Screen], bool]
"""Whether a screen shows what was asked for."""

BUDGET_S = 0.05
PAUSE_S = (0.35, 0.65)
"""Between two presses: as a person presses, and at no fixed moment of the second in which the studies report."""

SETTLED_S = 0.05
GIVEN_UP_S = 5.0


@dataclass
class Latencies:
    """Seconds of each press, by what was pressed for."""

    of: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, seconds: float) -> None:
        self.of.setdefault(what, []).append(seconds)

    @property
    def all(self) -> list[float]:
        return sorted(seconds for each in self.of.values() for seconds in each)

    def words(self, what: str | None = None) -> str:
        """Median, 95th percentile and longest."""
        ordered = self.all if what is None else sorted(self.of[what])
        most = [statistics.median(ordered), share(ordered, 0.95), ordered[-1]]
        return " / ".join(f"{1000 * seconds:.0f}" for seconds in most) + " ms"


def share(ordered: list[float], part: float) -> float:
    """What `part` of them do not pass."""
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]


def cursor_row(screen: pyte.Screen) -> int:
    """The row that the cursor of the studies is on, told by its background; -1 where none is."""
    backgrounds = [screen.buffer[row][3].bg for row in range(screen.lines)]
    marked = [row for row, colour in enumerate(backgrounds) if colour != max(set(backgrounds), key=backgrounds.count)]
    return next((row for row in marked if "study-" in screen.display[row]), -1)


def press_until(terminal: PseudoTerminal, key: str, shown: Shown) -> float:
    """Press `key`, and wait for what it asks for. Returns seconds until the last byte of it had come.

    What comes is looked at only once nothing more does: to follow it takes this emulation of a terminal, which is
    written in Python, longer than it took the program to write it, and would be counted as the program's.
    """
    begun = time.perf_counter()
    terminal.press(key)
    arrived: list[tuple[float, int]] = []
    while time.perf_counter() - begun < GIVEN_UP_S:
        if terminal.read(SETTLED_S):
            arrived.append((time.perf_counter(), len(terminal.raw)))
            continue
        for at, size in arrived:
            if shown(terminal.screen_after(size)):
                return at - begun
        arrived.clear()
    raise SystemExit(f"{key!r} changed nothing within {GIVEN_UP_S:.0f} s:\n{terminal.text}")


def measure(terminal: PseudoTerminal, presses: int) -> Latencies:
    """Move the cursor, zoom, and open and close the keys, `presses` times in all, each at a moment of its own."""
    order = random.Random(11)
    found = Latencies()
    for number in range(presses):
        terminal.observe(order.uniform(*PAUSE_S))
        key, what, shown = PRESSES[number % len(PRESSES)]
        found.add(what, press_until(terminal, key, shown(terminal.screen_after(len(terminal.raw)))))
    return found


def moved(screen: pyte.Screen) -> Shown:
    before = cursor_row(screen)
    return lambda screen: cursor_row(screen) not in (before, -1)


def there(text: str) -> Callable[[pyte.Screen], Shown]:
    return lambda _: lambda screen: any(text in line for line in screen.display)


def gone(text: str) -> Callable[[pyte.Screen], Shown]:
    return lambda _: lambda screen: not any(text in line for line in screen.display)


PRESSES = (
    ("j", "move", moved),
    ("j", "move", moved),
    ("k", "move", moved),
    ("z", "zoom", gone("2 Money")),
    ("z", "zoom", there("2 Money")),
    ("k", "move", moved),
    ("?", "open the keys", there("escape closes")),
    ("\x1b", "close them", gone("escape closes")),
)
"""Each key, what it is for, and how to tell that it was done."""
