"""Draw the pictures in docs/images: the sample session of `make demo`, at moments and sizes chosen here.

    python scripts/make_screenshots.py [NAME ...]

Everything but the clock is the product's own: the sample is written to a temporary folder, observed there, and shown.
The clock stands still but for the story, so that the same code draws the same pictures.
"""

import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from kev import files
from kevtui.app import KevApp, Options, Watched
from kevtui.observe.observer import Observer
from kevtui.observe.snapshot import Snapshot
from kevtui.observe.target import resolve
from kevtui.replay.look_back import open_past
from kevtui.sample.story import Story

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BEGINNING = datetime(2026, 3, 14, 21, 40, tzinfo=UTC)
STRETCH = 20.0
"""Seconds in each second of the story: beats come once a minute, and a study takes a third of an hour."""

LEASES = Path("volumes", "kev-leases")

WIDE, PHONE = (160, 50), (80, 24)


class StoryClock:
    """Both clocks, moved by the story alone."""

    def __init__(self) -> None:
        self._passed = 0.0

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return 1000.0 + self._passed

    def advance(self, seconds: float) -> None:
        self._passed += seconds


class Still:
    """A source that has one Snapshot and nothing more."""

    pace_s = None

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def observe(self) -> Snapshot:
        return self._snapshot

    def wait(self, timeout_s: float) -> bool:
        import time

        time.sleep(min(timeout_s, 0.2))
        return False

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    size: tuple[int, int] = WIDE
    keys: tuple[str, ...] = ()
    theme: str | None = None
    at_s: float = 0.0
    """Second of the story; 0 for its end."""
    shows: str = "WatchScreen"
    """The class of the screen that is on top."""
    beside_s: float | None = None
    """Second of the story at which the session of another tab stands."""


DIALOG = (120, 40)
MIDDLE_S = 24.0
DOWN = ("down", "down", "down")
PICTURES = (
    Picture("dashboard", keys=DOWN, at_s=MIDDLE_S),
    Picture("phone", PHONE, at_s=MIDDLE_S),
    Picture("readout", keys=("o",)),
    Picture("log", keys=("l",), at_s=MIDDLE_S),
    Picture("look-back", keys=("backspace", "left", "left", "left", "left"), at_s=MIDDLE_S),
    Picture("alerts", (120, 32), keys=("exclamation_mark",), at_s=26.0),
    Picture("tabs", (120, 32), beside_s=MIDDLE_S),
    Picture("details", DIALOG, keys=(*DOWN, "enter"), at_s=MIDDLE_S, shows="DetailsScreen"),
    Picture("columns", DIALOG, keys=("v", *DOWN, "right", "space"), at_s=MIDDLE_S, shows="ColumnsScreen"),
    Picture("copy", DIALOG, keys=(*DOWN, "i"), at_s=MIDDLE_S, shows="PaletteScreen"),
    Picture("palette", DIALOG, keys=("ctrl+p",), at_s=MIDDLE_S, shows="PaletteScreen"),
    Picture("help", DIALOG, keys=("question_mark",), at_s=MIDDLE_S, shows="HelpScreen"),
    Picture("light", theme="light", at_s=MIDDLE_S),
    Picture("deuteranopia", theme="deuteranopia", at_s=MIDDLE_S),
)


@dataclass(frozen=True, slots=True)
class Played:
    """The session at a second of the story."""

    root: Path
    snapshot: Snapshot


def main(names: list[str]) -> int:
    wanted = [picture for picture in PICTURES if not names or picture.name in names]
    # Its name is in the pictures.
    folder = Path(tempfile.gettempdir(), "night")
    folder.mkdir(mode=0o700)
    played: dict[float, Played] = {}
    try:
        for at_s in {each for picture in wanted for each in (picture.at_s, picture.beside_s) if each is not None}:
            root = folder / f"r7-{at_s:.0f}"
            root.mkdir()
            played[at_s] = Played(root, play(root, until_s=at_s or float("inf")))
        for picture in wanted:
            asyncio.run(draw(picture, played))
            print(IMAGES / f"{picture.name}.svg")
    finally:
        files.remove_tree(folder)
    return 0


def play(root: Path, *, until_s: float) -> Snapshot:
    """Write the story up to a second of it, observed all the while as the dashboard would."""
    clock = StoryClock()
    observer: Observer | None = None
    stamps: dict[Path, int] = {}
    for pause_s in Story(root, clock, STRETCH).play():
        _stamp(root, stamps, clock.now())
        if observer is None:
            target = resolve("r7", root=root, cwd=root)
            observer = Observer(target, clock=clock, leases=root / LEASES)
        observer.observe()
        if clock.monotonic() - 1000.0 >= until_s * STRETCH:
            break
        clock.advance(pause_s)
    assert observer is not None
    snapshot = observer.observe()
    observer.close()
    return snapshot


def _stamp(root: Path, known: dict[Path, int], now: datetime) -> None:
    """Give every file written since the last look the story's time."""
    for path in sorted(root.rglob("*")):
        if path.stat().st_mtime_ns != known.get(path):
            os.utime(path, (now.timestamp(), now.timestamp()))
            known[path] = path.stat().st_mtime_ns


async def draw(picture: Picture, played: dict[float, Played]) -> None:
    session = played[picture.at_s]
    title, more = session.snapshot.title, ()
    if picture.beside_s is not None:
        # Two sessions of one name say in which folder they are.
        other = played[picture.beside_s].snapshot
        more = (Watched(f"{title} · tonight", lambda: Still(other)),)
        title = f"{title} · yesterday"
    past = partial(open_past, resolve("r7", root=session.root, cwd=session.root), session.root / LEASES)
    options = Options(theme=picture.theme, open_past=past, more=more)
    app = KevApp(lambda: Still(session.snapshot), title=title, options=options)
    async with app.run_test(size=picture.size) as pilot:
        for _ in range(200):
            await pilot.pause(0.02)
            if all(tab.snapshot is not None for tab in app._tabs) and app._watch.snapshot is not None:
                break
        await pilot.pause()
        for key in picture.keys:
            await pilot.press(key)
            await pilot.pause(0.3)
        if type(app.screen).__name__ != picture.shows:
            raise SystemExit(f"{picture.name}: shows {type(app.screen).__name__}, not {picture.shows}")
        files.write_atomic(IMAGES / f"{picture.name}.svg", app.export_screenshot(title="kevtui").encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
