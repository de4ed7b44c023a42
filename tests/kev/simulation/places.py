"""Where things are in a simulated checkout."""

from pathlib import Path

ROOT = Path("/lab")
RUNS = ROOT / "runs"
STATE_PATH = RUNS / "night-state.json"
STATE = str(STATE_PATH)
LEDGER = str(RUNS / "ledger.jsonl")
JOURNAL = str(RUNS / "night-events.jsonl")
CONTROL = str(RUNS / "night-control.json")
TEST = "/runs/x/checkpoint sha test"
"""What is read once in such a night."""
