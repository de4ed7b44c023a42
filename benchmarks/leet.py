"""The same figures for wandb's terminal dashboard, over an offline run that wandb itself wrote."""

import statistics
import subprocess
import sys
from pathlib import Path

from pseudo_terminal import PseudoTerminal

VERSION = "0.31.0"
TITLE = f"wandb {VERSION} leet"

WRITER = """
import sys, time, wandb
run = wandb.init(mode="offline", project="look", dir=sys.argv[1])
for step in range(500):
    run.log({f"metric {n}": n + 200 / (step + 100) for n in range(20)}, step=step)
print("written", flush=True)
for step in range(500, 500 + int(sys.argv[2])):
    time.sleep(1)  # the pace of the run that is watched
    run.log({f"metric {n}": n + 200 / (step + 100) for n in range(20)}, step=step)
run.finish()
"""


def measure(folder: Path, *, quick: bool) -> dict[str, str]:
    """Figures under the names of our own rows; wandb is installed into `folder`."""
    python = install(folder / "venv")
    found: dict[str, str] = {}
    done = write_run(python, folder / "done", 0)
    done.wait()
    run = next((folder / "done").rglob("*.wandb")).parent
    frames, cpus = [], []
    for _ in range(2 if quick else 5):
        with start(python, run, folder) as terminal:
            frames.append(terminal.wait_for_bytes("metric 1"))
            cpus.append(terminal.cpu_s())
    found["first frame, wall"] = f"{1000 * statistics.median(frames):.0f} ms"
    found["first frame, CPU"] = f"{statistics.median(cpus):.2f} s"
    with start(python, run, folder) as terminal:
        terminal.wait_for("metric 1")
        terminal.wait_until_quiet(2)
        seen = terminal.observe(10 if quick else 30)
        found["nothing moving, CPU"] = f"{seen.cpu_percent:.2f} %"
        found["nothing moving, to the terminal"] = f"{seen.bytes_per_s:,.0f} B/s"
        found["memory, 4 trials"] = f"{terminal.memory_mb():.0f} MB (1 run)"
    seconds = 40 if quick else 80
    writer = write_run(python, folder / "live", seconds)
    try:
        run = next((folder / "live").rglob("*.wandb")).parent
        with start(python, run, folder) as terminal:
            terminal.wait_for("metric 1")
            terminal.observe(5)  # until it has read what was there
            seen = terminal.observe(10 if quick else 30)
            found["20 trials at 1 Hz, CPU"] = f"{seen.cpu_percent:.2f} % (1 run of 20 metrics)"
            found["20 trials at 1 Hz, to the terminal"] = f"{seen.bytes_per_s:,.0f} B/s (1 run of 20 metrics)"
    finally:
        writer.kill()
        writer.wait()
    return found


def install(venv: Path) -> Path:
    print(f"installing wandb {VERSION}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / "bin" / "python"
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"wandb=={VERSION}"], check=True
    )
    return python


def write_run(python: Path, directory: Path, live_s: int) -> "subprocess.Popen[str]":
    """A run in `directory` whose first 500 steps are written when this returns; then a step a second for `live_s`."""
    directory.mkdir()
    writer = subprocess.Popen(
        [str(python), "-c", WRITER, str(directory), str(live_s)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    while line := writer.stdout.readline():
        if line.startswith("written"):
            return writer
    raise SystemExit("wandb wrote no run")


def start(python: Path, run: Path, home: Path) -> PseudoTerminal:
    argv = [str(python), "-m", "wandb", "beta", "leet", "run", str(run)]
    env = {"HOME": str(home), "WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
    return PseudoTerminal(argv, env=env, cwd=home)
