"""What a watcher's pass over a large session costs: 100 studies of five trials each, all of which run on.

    python benchmarks/session.py [--studies 100] [--passes 100]

The provider and the clock are those of the tests; the disk is real. Prints, for a tenth of the session and for all of
it, the CPU time of launching one trial, the mean CPU time of a pass, and the memory that one more pass takes.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "kev" / "simulation")]

from fake_compute import Plan  # noqa: E402
from lab import Lab, order  # noqa: E402

from kev.document import Document  # noqa: E402
from kev.records.spec import RoundSpec  # noqa: E402
from kev.rounds.engine import Engine  # noqa: E402
from kev.rounds.specs import LoadedSpec  # noqa: E402
from kev.rounds.trial_orders import Provenance  # noqa: E402
from kev.rounds.watching.loop import watch  # noqa: E402

TRIALS = 5
INTERVAL_S = 120.0


def spec_of(studies: int) -> RoundSpec:
    """A round with that many studies, each of whose trials is an arm."""
    study = {"plan": "p.json", "suite": "evals/a", "transfer": "evals/b", "gpu": "H200", "timeout": 86_400, "budget": 9}
    arms = {f"2b-{s}x{t}": {"trial": f"runs/s{s}/{t:02d}-trial-{t}", "parent": "p"}
            for s in range(studies) for t in range(TRIALS)}  # fmt: skip
    return RoundSpec.model_validate({
        "round": 7, "registered": "PLAN.md", "gpu": "H100", "studies": {f"s{s}": study for s in range(studies)},
        "reads": {"hard": {"suite": "evals/hard"}}, "parents": {"p": {"trial": "runs/p/00-trial-0", "reads": "runs/p"}},
        "arms": arms, "rule": {"panels": {"hard": {"reads": ["hard"], "metrics": ["acc"]}}, "criteria": {}},
    })  # fmt: skip


async def measure(studies: int, passes: int) -> dict[str, Any]:
    """Launch the session, and watch it for so many passes, in none of which anything ends."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        lab = Lab(root, authorization="1000000")
        lab.compute.plan = lambda *_: Plan(seconds=80_000)
        lab.compute.committed = dict  # type: ignore[method-assign]  # nothing ends; the double's own look is quadratic
        wanted = [(f"trial/s{s}/trial-{t}", order(f"s{s}", f"trial-{t}", usd="1", timeout=86_400, round=7))
                  for s in range(studies) for t in range(TRIALS)]  # fmt: skip
        began = time.process_time()
        await lab.gate.reserve("round 7", wanted)
        for unit_id, _ in wanted:
            await lab.gate.start(unit_id)
        launched = time.process_time() - began
        path = root / "r7.json"
        loaded = LoadedSpec(path, root, spec_of(studies), Document(path, {}, {}, ()))
        engine = Engine(root, lab.new_gate(), lab.compute.count_claims, Provenance("sha", None, "night"))
        began = time.process_time()
        await watch(engine, loaded, lambda _: True, interval_s=INTERVAL_S, passes=passes)
        took = time.process_time() - began
        tracemalloc.start()  # which makes everything slow, so it looks at a pass of its own
        await watch(engine, loaded, lambda _: True, interval_s=INTERVAL_S, passes=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return {"trials": studies * TRIALS, "launch_ms_per_trial": round(launched / len(wanted) * 1000, 2),
            "pass_ms": round(took / passes * 1000, 1), "peak_mib": round(peak / 2**20, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="What a watcher's pass over a large session costs.")
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [asyncio.run(measure(studies, arguments.passes)) for studies in (arguments.studies // 10, arguments.studies)]
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(", ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
