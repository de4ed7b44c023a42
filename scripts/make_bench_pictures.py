"""Draw in docs/images what the sample session has none of: runs of the agent bench, and two read-outs side by side.

    PYTHONPATH=$PWD python scripts/make_bench_pictures.py [NAME ...]

Over small files such as the tests make. The clock stands still.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
for directory in ("tests/kevtui/bench", "tests/kev/autorl"):
    sys.path.insert(0, str(REPOSITORY / directory))

from bench_files import STARTED, entry, result, workspace  # noqa: E402  found through the lines above
from hand_clock import HandClock  # noqa: E402
from journals import MadeUpRun  # noqa: E402

from kev import files  # noqa: E402
from kevtui.app import KevApp, Options  # noqa: E402
from kevtui.bench.app import BenchApp  # noqa: E402
from kevtui.bench.machine import MachineWatch  # noqa: E402
from kevtui.bench.observer import BenchObserver  # noqa: E402
from kevtui.bench.snapshot import Gpu, Machine  # noqa: E402
from kevtui.bench.target import bench_at  # noqa: E402
from kevtui.dashboard import look  # noqa: E402
from kevtui.observe.observer import Observer  # noqa: E402
from kevtui.observe.target import resolve  # noqa: E402

IMAGES = REPOSITORY / "docs" / "images"
READOUTS = REPOSITORY / "tests" / "fixtures" / "readouts"
LARGE, MEDIUM = (160, 50), (120, 40)
GIB = 1024**3


class SomeMachine(MachineWatch):
    """Another one than that which draws the pictures."""

    def look(self) -> Machine:
        return Machine(16, 0.41, 6.2, 58 * GIB, 128 * GIB, (Gpu("H100", 0.97),))


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    shows: str
    """The class of the screen that is on top."""
    has: str
    """Words that are there once the picture is whole."""
    open: Callable[[Path], KevApp]
    size: tuple[int, int] = MEDIUM
    keys: tuple[str, ...] = ()


def a_run(folder: Path) -> KevApp:
    """A run with a journal: three submissions were graded and one was not."""
    run = MadeUpRun(folder / "arithmetic" / "20270203T040506_grpo")
    run.append(submission=run.submit(24.0, label="gain"), what="warm start on worked answers", why="no marker before")
    run.append(submission=run.submit(None, label="error", error="no config.json in output/v2"), what="a smaller step")
    run.append(
        submission=run.submit(41.5, label="gain"), what="rewards for the answer alone", why="the marker is there"
    )
    run.append(submission=run.submit(65.0, label="gain"), what="longer, from the third", why="the reward still rises")
    steps = (f"step {step} of 400  reward {0.2 + step / 800:.3f}\n" for step in range(240))
    run.workspace.agent_log.write_text("".join(steps))
    run.clock.pass_time(20)
    _stamp(folder, run.clock)
    return _bench(run.workspace.run_meta.parent, run.clock)


def several(folder: Path) -> KevApp:
    """Two agents on two tasks."""
    scores = [entry(1, 22.0), entry(6, 23.5), entry(15, 29.0)]
    first = workspace(folder / "arithmetic" / "20270115T080000_sft", scores, end_time=STARTED + 1800)
    results = folder / "results.csv"
    result(results, "a1", "sft", "arithmetic", 9.0, verdict="gain", workspace=str(first))
    result(results, "a2", "sft", "decisions", None, verdict="")
    result(results, "b1", "grpo", "arithmetic", 45.0, verdict="gain")
    result(results, "b2", "grpo", "decisions", 5.25, verdict="tie")
    return _bench(results, HandClock())


def _bench(path: Path, clock: HandClock) -> KevApp:
    target = bench_at(str(path), root=None, cwd=path.parent)
    assert target is not None
    return BenchApp(
        lambda: BenchObserver(target, clock=clock, poll=True, machine=SomeMachine()),
        title=target.title,
        several=target.is_results,
        options=Options(),
    )


def beside(folder: Path) -> KevApp:
    """Two rounds that were read out."""
    for number in (61, 62):
        for name, place in (
            (f"r{number}.json", "experiments/rounds"),
            (f"round{number}.json", f"runs/r{number}-readout"),
        ):
            (folder / place).mkdir(parents=True, exist_ok=True)
            (folder / place / name).write_bytes((READOUTS / name).read_bytes())
    clock = HandClock()
    _stamp(folder, clock)
    target = resolve("r61", root=folder, cwd=folder)
    options = Options(beside="r62", look=look)
    return KevApp(lambda: Observer(target, clock=clock, poll=True), title=target.title, options=options)


def _stamp(folder: Path, clock: HandClock) -> None:
    """Give every file the clock's time."""
    for path in folder.rglob("*"):
        os.utime(path, (clock.now().timestamp(), clock.now().timestamp()))


PICTURES = (
    Picture("bench-run", "RunScreen", "best 65.00", a_run, LARGE),
    Picture("bench-several", "ComparisonScreen", "grpo", several, keys=("end",)),
    Picture("beside", "BesideScreen", "Δ", beside),
)


async def draw(picture: Picture, folder: Path) -> None:
    app = picture.open(folder)
    async with app.run_test(size=picture.size) as pilot:
        for _ in range(300):
            await pilot.pause(0.02)
            text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            if type(app.screen).__name__ == picture.shows and picture.has in text:
                break
        else:
            raise SystemExit(f"{picture.name}: never shown:\n{text}")
        for key in picture.keys:
            await pilot.press(key)
        await pilot.pause(0.3)
        files.write_atomic(IMAGES / f"{picture.name}.svg", app.export_screenshot(title="kevtui").encode())


def main(names: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="kevtui-pictures-"))
    try:
        for picture in PICTURES:
            if not names or picture.name in names:
                (folder / picture.name).mkdir()
                asyncio.run(draw(picture, folder / picture.name))
                print(IMAGES / f"{picture.name}.svg")
    finally:
        with suppress(FileNotFoundError):
            files.remove_tree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
