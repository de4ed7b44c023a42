"""`python -m kev.demo.chaos DIR`: the demo's round while its processes are killed at random, and what became of it.

In every stretch of 20 seconds the watcher, the emulator and one container are each killed with SIGKILL at a moment of
their own. What must hold at the end: the numbers of an undisturbed round, and no attempt that ran or was paid twice.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import files
from kev.console import run
from kev.demo.processes import processes_of
from kev.emulator.process import is_running
from kev.errors import KevError, Refused

EVERY_S = 20.0
MOST_STRETCHES = 75
"""After so many a round that has not ended gets no further."""

OVERLAP_S = 0.05
"""Two records of the same moment, by one clock."""


def watchers(root: Path) -> list[int]:
    return [process for process, line in processes_of(root).items() if "kev.rounds watch" in line]


def emulators(root: Path) -> list[int]:
    return [process for process, line in processes_of(root).items() if "kev.emulator up" in line]


def workers(root: Path) -> list[int]:
    """The main processes of containers that run now."""
    found = []
    for task in (root / "emulator" / "tasks").glob("*/process.json"):
        with suppress(KevError):
            process = files.read_json(task)["pid"]
            if not (task.parent / "exit.json").exists() and is_running(process):
                found.append(process)
    return found


VICTIMS: dict[str, Callable[[Path], list[int]]] = {"watcher": watchers, "emulator": emulators, "worker": workers}


def disturb(root: Path, demo: "subprocess.Popen[str]", draw: random.Random, every_s: float) -> Counter[str]:
    """Kill until the demo has ended. Returns how often each kind was killed."""
    killed: Counter[str] = Counter()
    began = time.monotonic()
    while demo.poll() is None and time.monotonic() - began < MOST_STRETCHES * every_s:
        start = time.monotonic()
        for moment, kind in sorted((draw.uniform(0, every_s), kind) for kind in VICTIMS):
            with suppress(subprocess.TimeoutExpired):
                demo.wait(max(0.0, start + moment - time.monotonic()))
            if demo.poll() is None and (found := sorted(VICTIMS[kind](root))):
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(found), signal.SIGKILL)
                    killed[kind] += 1
        with suppress(subprocess.TimeoutExpired):
            demo.wait(max(0.0, start + every_s - time.monotonic()))
    return killed


def numbers(root: Path) -> Any:
    """What the read-out says, without the names of directories."""
    value = files.read_json(root / "work" / "runs" / "r40-readout" / "round40.json")
    arms = {name: {key: arm.get(key) for key in ("panels", "temperature", "parent_temperature", "criteria", "passed")}
            for name, arm in value["arms"].items()}  # fmt: skip
    return {"arms": arms, "candidates": value["candidates"]}


def faults_of_the_bill(root: Path) -> list[str]:
    """Attempts that ran or were counted twice; a line each."""
    from kev.emulator.journal import Journal
    from kev.emulator.store import Store
    from kev.ledger.book import Ledger

    store = Store(Journal(root / "emulator" / "journal.jsonl"))
    store.load()
    found = []
    units = Ledger(root / "work" / "runs").read().by_id.values()
    counted = [attempt.call for unit in units for attempt in unit.counted]
    spawned = [call.id for call in store.calls.values() if store.function(call.function_id).name.startswith("run_")]
    asked = [call.id for call in store.calls.values() if call.id not in spawned]
    found += [f"{call}: counted {times} times" for call, times in Counter(counted).items() if times > 1]
    found += [f"{call}: was spawned and is in no ledger" for call in spawned if call not in counted]
    found += [f"{call}: is in the ledger and was never spawned" for call in counted if call not in spawned + asked]
    runs: dict[str, list[tuple[float, float, str]]] = {}
    for attempt in store.attempts.values():
        task = store.tasks[attempt.task_id]
        runs.setdefault(attempt.call_id, []).append((attempt.started, task.finished, task.id))
    for call, spans in runs.items():
        spans.sort()
        for (_, end, one), (start, _, other) in itertools.pairwise(spans):
            if not end or start < end - OVERLAP_S:
                found.append(f"{call}: {one} and {other} worked on it at once")
    state = files.read_json(root / "work" / "runs" / "demo-state.json")
    metered = Decimal(str(state["readings"][-1]["metered_usd"]))
    cost = sum((Decimal(str(max(0.0, task.finished - task.started))) / 3600 * sum(task.hourly.values())
                for task in store.tasks.values() if task.started), Decimal(0))  # fmt: skip
    if metered > cost + Decimal("0.01"):
        found.append(f"metered ${metered:f} is more than the ${cost:f} that all containers together cost")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Play the demo under fire, and print a JSON object of what became of it. 0 if everything held."""
    parser = argparse.ArgumentParser(prog="python -m kev.demo.chaos", description=__doc__)
    parser.add_argument("root", type=Path, metavar="DIR", help="a folder that is new or empty")
    parser.add_argument("--like", type=Path, metavar="DIR", help="the folder of an undisturbed demo to compare with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="S", help="(%(default)s)")
    return run(lambda: _main(parser.parse_args(arguments)))


def _main(given: argparse.Namespace) -> int:
    root, began = given.root.absolute(), time.monotonic()
    demo = subprocess.Popen([sys.executable, "-m", "kev.demo", str(root), "--fast"], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    for line in demo.stdout:
        if json.loads(line)["phase"] == "watch":  # what went before, a person would have seen fail
            break
    killed = disturb(root, demo, random.Random(given.seed), given.every)
    if demo.poll() is None:
        demo.terminate()
        demo.communicate()
        longest, kills = MOST_STRETCHES * given.every, killed.total()
        raise Refused(f"{root}: the round had not ended after {longest:,.0f} s and {kills} kills; where a container "
                      f"takes about {given.every:g} s to begin, nothing gets further: --every takes more")  # fmt: skip
    demo.communicate()
    found = faults_of_the_bill(root)
    same = numbers(root) == numbers(given.like.absolute()) if given.like else None
    print(json.dumps({"code": demo.returncode, "seconds": round(time.monotonic() - began), "killed": killed,
                      "same_numbers": same, "bill": found, "left": list(processes_of(root).values())}))  # fmt: skip
    return 0 if demo.returncode == 0 and not found and same is not False else 1


if __name__ == "__main__":
    sys.exit(main())
