"""A small night, made by hand: one trial, two attempts, and a file time for everything."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kevtui.observe.target import resolve
from kevtui.replay.history import History
from kevtui.replay.night import load_night

BEGAN = datetime(2026, 3, 1, 20, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def text(minutes: float) -> str:
    return at(minutes).isoformat()


def put(path: Path, minutes: float, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (at(minutes).timestamp(),) * 2)


def make_night(root: Path) -> History:
    """Two attempts at one trial between minutes 10 and 60; metered at 0, 30 and 60; all of it written by 70."""
    runs = root / "runs"
    steps = [{"step": step, "steps": 50, "loss": 5 - step / 20, "at": text(10 + step)} for step in range(1, 51)]
    put(runs / "n1-state.json", 70, {
        "session": "n1", "authorization_usd": 100, "baseline_usd": 10, "opened_at": text(0), "closed_at": text(69),
        "readings": [{"at": text(minute), "metered_usd": 10 + minute} for minute in (0, 30, 60)],
        "studies": {"r5-a": {"bound_usd": 20, "calls": {"trial-0": "fc-2"}, "status": "done"}},
    })  # fmt: skip
    attempts = [
        {"nonce": "a", "call": "fc-1", "at": at(9).timestamp(), "abandoned": at(20).timestamp()},
        {"nonce": "b", "call": "fc-2", "at": at(21).timestamp()},
    ]
    put(runs / "r5-a.spawn.json", 21, {
        "name": "r5-a", "calls": {"trial-0": "fc-2"}, "attempts": {"trial-0": attempts}, "bound_usd": 20,
        "modal_retries": 0, "full_ft": True, "timeout": 7200, "gpu": "H100",
    })  # fmt: skip
    put(runs / "r5-a/00-trial-0/metrics.jsonl", 60, "".join(f"{json.dumps(step)}\n" for step in steps))
    put(runs / "r5-a/00-trial-0/train.log", 60, "".join(f"step {n}/50 loss 1.0\n" for n in range(10, 51, 10)))
    put(runs / "r5-a/00-trial-0/result.json", 62, {"ok": True})
    events = [(9, "info", "launched"), (20, "warning", "given up"), (21, "info", "again"), (62, "info", "done")]
    lines = [json.dumps({"at": text(m), "kind": "k", "severity": s, "text": t}) for m, s, t in events]
    put(runs / "n1-events.jsonl", 62, "\n".join(lines) + "\n")
    return History(load_night(resolve("n1", root=root, cwd=root), root / "volumes" / "kev-leases"))
