"""What looking costs: first paint, silence, motion, many trials, a huge log; each beside its budget.

Run by hand, on an otherwise idle machine: `python benchmarks/look.py [--quick] [--with-leet]`. Prints a Markdown
table for docs/performance.md; what it is doing goes to standard error. `--with-leet` installs wandb into a scratch
environment (from the package index) and measures its dashboard in the same run.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "terminal"))

import hanging_remote
import key_latency
import leet
import over_ssh
from pseudo_terminal import HAS_PROC, Observation, PseudoTerminal
from session_files import NAME, SessionFiles

from kevtui.observe.log_file import LogFile

REPOSITORY = Path(__file__).parent.parent
GIGABYTE = 1 << 30
LAST_LINE = "@" * 60
"""Of the huge log: no cell of it is on the screen before, so it is written in one piece."""


@dataclass
class Row:
    what: str
    budget: str
    measured: str
    within: bool | None = None
    """None where the budget is not one of ours to keep, or there is none."""


@dataclass
class Report:
    quick: bool
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, budget: str, measured: str, within: bool | None = None) -> None:
        self.rows.append(Row(what, budget, measured, within))
        print(f"{what}: {measured} (budget {budget})", file=sys.stderr)

    def several(self, count: int) -> range:
        return range(2 if self.quick else count)

    def window_s(self, seconds: float) -> float:
        return seconds / 3 if self.quick else seconds


@contextmanager
def dashboard(
    root: Path, *, columns: int = 120, rows: int = 40, environment: Mapping[str, str] = {}
) -> Iterator[PseudoTerminal]:
    argv = [sys.executable, "-m", "kevtui", "session", NAME, "--root", str(root), "--no-mouse"]
    env = {"PYTHONPATH": str(REPOSITORY), **environment}
    with PseudoTerminal(argv, columns=columns, rows=rows, env=env, cwd=root) as terminal:
        yield terminal


def still_session(root: Path, *, studies: int = 2, trials: int = 2, gigabyte: bool = False) -> SessionFiles:
    """One in which nothing moves any more, so that no age on the screen ticks either."""
    metered_at = datetime.now(UTC) - timedelta(days=3)
    session = SessionFiles(root, studies=studies, trials=trials, metered_at=metered_at).write()
    if gigabyte:
        write_gigabyte(session.log(0, 0))
    session.age()
    return session


def first_paint(report: Report, root: Path) -> None:
    still_session(root)
    frames, datas, cpus = [], [], []
    with dashboard(root) as terminal:  # once unmeasured, so that every module is compiled
        terminal.wait_for("study-001/1")
    for _ in report.several(7):
        with dashboard(root) as terminal:
            frames.append(terminal.wait_for_bytes("Money"))
            cpus.append(terminal.cpu_s())
            datas.append(terminal.wait_for_bytes("study-001/1"))
    frame, cpu = statistics.median(frames), statistics.median(cpus)
    report.add("first frame, wall", "≤ 250 ms", f"{1000 * frame:.0f} ms", frame <= 0.25)
    report.add("first frame, CPU", "≤ 0.25 s", f"{cpu:.2f} s", cpu <= 0.25)
    report.add("first data on the screen, wall", "-", f"{1000 * statistics.median(datas):.0f} ms")


def once(report: Report, root: Path) -> None:
    still_session(root)
    argv = [sys.executable, "-m", "kevtui", "session", NAME, "--root", str(root), "--once"]
    env = dict(os.environ, PYTHONPATH=str(REPOSITORY))
    seconds = []
    for _ in report.several(9):
        begun = time.perf_counter()
        subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - begun)
    once_s = statistics.median(seconds)
    report.add("`--once`, wall", "≤ 150 ms", f"{1000 * once_s:.0f} ms", once_s <= 0.15)


def silence(report: Report, root: Path) -> None:
    still_session(root)
    with dashboard(root) as terminal:
        terminal.wait_for("study-001/1")
        terminal.wait_until_quiet(2)
        seen = terminal.observe(report.window_s(30))
        add_steady(report, "nothing moving", seen, 0.3, 0)
        report.add("memory, 4 trials", "-", f"{terminal.memory_mb():.0f} MB")


def motion(report: Report, root: Path) -> None:
    session = SessionFiles(root, studies=10, trials=2).write()
    with dashboard(root) as terminal:
        terminal.wait_for("study-000/1")
        terminal.wait_until_quiet(1)
        with every_second(lambda tick: step_all(session, tick)):
            terminal.wait_for(lambda: "/100000" in terminal.text and "400/" not in terminal.text)
            seen = terminal.observe(report.window_s(30))
        add_steady(report, "20 trials at 1 Hz", seen, 1.5, 2000)


def ssh(report: Report, root: Path) -> None:
    found = over_ssh.programs()
    what, budget = "20 studies at 1 Hz behind sshd and tmux", "≤ 2,000 B/s"
    if isinstance(found, str):
        report.add(f"{what}, to the terminal", budget, f"not measured: {found}")
        return
    session = SessionFiles(root / "checkout", studies=20, trials=1).write()
    with over_ssh.dashboard(session.root, root / "ssh", found) as (terminal, wire):
        terminal.wait_for("study-000/0")
        terminal.wait_until_quiet(1)
        with every_second(lambda tick: step_all(session, tick)):
            terminal.wait_for(lambda: "/100000" in terminal.text and "400/" not in terminal.text)
            seen, sent = over_ssh.observe(terminal, wire, report.window_s(60))
    report.add(f"{what}, to the terminal", budget, f"{seen.bytes_per_s:,.0f} B/s", seen.bytes_per_s <= 2000)
    report.add("the same, on the wire", budget, f"{sent:,.0f} B/s", sent <= 2000)


def step_all(session: SessionFiles, tick: int) -> None:
    for study in range(session.studies):
        for trial in range(session.trials):
            session.step(study, trial, session.first_step + tick)


def add_steady(report: Report, what: str, seen: Observation, percent: float, rate: float) -> None:
    report.add(f"{what}, CPU", f"≤ {percent} %", f"{seen.cpu_percent:.2f} %", seen.cpu_percent <= percent)
    budget = f"≤ {rate:,.0f} B/s" if rate else "0 B/s"
    report.add(f"{what}, to the terminal", budget, f"{seen.bytes_per_s:,.0f} B/s", seen.bytes_per_s <= rate)


@contextmanager
def every_second(action: Callable[[int], None]) -> Iterator[None]:
    """Call `action` with 1, 2, 3 … each second, on a thread, for as long as the block lasts."""
    over = threading.Event()

    def run() -> None:
        tick = 0
        while not over.wait(1.0):
            tick += 1
            action(tick)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def latency(report: Report, root: Path) -> None:
    session = SessionFiles(root).write()
    seconds = []
    with dashboard(root) as terminal:
        terminal.wait_for("study-001/1")
        terminal.wait_until_quiet(1)
        for number in report.several(10):
            step = session.first_step + 1 + number
            begun = time.perf_counter()
            session.step(0, 0, step)
            terminal.wait_for(f"{step}/")
            seconds.append(time.perf_counter() - begun)
            terminal.observe(2.5)  # the pace of an occasional change
    shown = statistics.median(seconds)
    report.add("from a change on the disk to the screen, median", "≤ 150 ms", f"{1000 * shown:.0f} ms", shown <= 0.15)
    report.add("the same, slowest", "-", f"{1000 * max(seconds):.0f} ms")


def keys(report: Report, root: Path) -> None:
    """While 20 studies report each second, a pull runs, and the provider that it asks answers nothing."""
    checkout = root / "checkout"
    session = hanging_remote.twenty_studies(checkout)
    with (
        hanging_remote.hanging_provider(root / "provider") as environment,
        dashboard(checkout, environment=environment) as terminal,
        every_second(lambda tick: step_all(session, tick)),
    ):
        terminal.wait_for("CONTROL")
        terminal.wait_until_quiet(0.5)
        terminal.press("p")
        terminal.wait_for(lambda: hanging_remote.pulls_begun(checkout) == 1)
        terminal.observe(3)
        found = key_latency.measure(terminal, 32 if report.quick else 160)
        still = hanging_remote.pulls_begun(checkout)
        within = key_latency.share(found.all, 0.95) <= key_latency.BUDGET_S
        report.add(
            f"key to screen, 20 studies at 1 Hz and a pull that hangs: p50 / p95 / max of {len(found.all)}",
            "p95 ≤ 50 ms", found.words(), within,
        )  # fmt: skip
        for what in found.of:
            report.add(f"the same, to {what}", "-", found.words(what))
        if still != 1:
            print("the pull had ended before the measurement was over", file=sys.stderr)


def many_trials(report: Report, root: Path) -> None:
    log = still_session(root, studies=50, trials=20, gigabyte=True).log(0, 0)
    with dashboard(root, columns=160, rows=50) as terminal:
        report.add("first frame, 1,000 trials", "-", f"{1000 * terminal.wait_for_bytes('Money'):.0f} ms")
        report.add("first data, 1,000 trials", "-", f"{1000 * terminal.wait_for_bytes('study-000/1'):.0f} ms")
        terminal.wait_until_quiet(2)
        begun = time.perf_counter()
        terminal.press("l")
        terminal.wait_for_bytes(LAST_LINE)
        opened = time.perf_counter() - begun
        report.add(
            "a 1 GB log, from the key to its end on the screen", "≤ 200 ms", f"{1000 * opened:.0f} ms", opened <= 0.2
        )
        terminal.wait_until_quiet(2)
        memory = terminal.memory_mb()
        report.add("memory, 1,000 trials and a 1 GB log open", "≤ 60 MB", f"{memory:.0f} MB", memory <= 60)
        add_steady(report, "the same, nothing moving", terminal.observe(report.window_s(15)), 0.3, 0)
    begun = time.perf_counter()
    opened_log = LogFile(log)
    opened_log.before(opened_log.size, 50)
    report.add("a 1 GB log, last page read", "-", f"{1000 * (time.perf_counter() - begun):.1f} ms")
    opened_log.close()


def write_gigabyte(path: Path) -> None:
    lines = "".join(f"a line of a long run, number {number} of a repeated block\n" for number in range(18_000)).encode()
    last = path.read_bytes() + f"{LAST_LINE}\n".encode()
    with path.open("wb") as stream:
        for _ in range(GIGABYTE // len(lines)):
            stream.write(lines)
        stream.write(last)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return (
        f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, Textual {version('textual')}; load at the start {os.getloadavg()[0]:.2f}"
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def table(report: Report, beside: dict[str, str], about: str) -> str:
    """The report as Markdown, with a column for the other dashboard where it was measured."""
    extra = [leet.TITLE] if beside else []
    lines = [
        f"Measured {datetime.now(UTC):%Y-%m-%d} by `python benchmarks/look.py {' '.join(sys.argv[1:])}`".rstrip("` ")
        + "`",
        f"on {about}.",
        "",
        f"| {' | '.join(['what', 'budget', 'kevtui', *extra])} |",
        f"| {' | '.join(['---'] * (3 + len(extra)))} |",
    ]
    for row in report.rows:
        mark = {None: "", True: "", False: " **over**"}[row.within]
        cells = [row.what, row.budget, row.measured + mark] + ([beside.get(row.what, "")] if beside else [])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


PARTS = (first_paint, once, silence, motion, ssh, keys, latency, many_trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS], help="measure one part")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and shorter windows")
    parser.add_argument("--with-leet", action="store_true", help="also install and measure wandb's dashboard")
    arguments = parser.parse_args()
    if not HAS_PROC:
        sys.exit("no /proc here to measure CPU time with")
    about, report = machine(), Report(arguments.quick)
    for part in PARTS if arguments.only is None else [part for part in PARTS if part.__name__ == arguments.only]:
        with tempfile.TemporaryDirectory(prefix="look-") as folder:
            part(report, Path(folder))
    beside: dict[str, str] = {}
    if arguments.with_leet:
        with tempfile.TemporaryDirectory(prefix="look-leet-") as folder:
            beside = leet.measure(Path(folder), quick=arguments.quick)
    print(table(report, beside, about))


if __name__ == "__main__":
    main()
