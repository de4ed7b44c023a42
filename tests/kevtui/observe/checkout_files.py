"""What tests put into a checkout: a registered round, and a line of a training log."""

from typing import Any

SPEC: dict[str, Any] = {
    "round": 9, "registered": "a sample plan", "gpu": "H200",
    "studies": {"r9-a": {"plan": "p.json", "suite": "evals/s", "transfer": "evals/t", "gpu": "H200", "timeout": 3600,
                         "budget": 20}},
    "reads": {"hard": {"suite": "evals/hard"}, "docs": {"suite": "evals/documents"}, "wide": {"suite": "evals/w"}},
    "parents": {"4b": {"trial": "runs/p/00-trial-0", "reads": {"hard": "runs/p-hard"}}},
    "arms": {"4b-a": {"trial": "runs/r9-a/00-trial-0", "parent": "4b"}, "4b-b": {"checkpoint": "/x", "parent": "4b"}},
    "rule": {"panels": {"hard": {"reads": ["hard", "docs", "wide"], "metrics": ["acc"]}},
             "criteria": {"1_gain": {"left": "hard.acc.lower", "op": ">", "right": 0},
                          "3_ece": {"left": "hard.ece.candidate", "op": "<=", "right": "hard.ece.parent",
                                    "plus": 0.01}}},
    "confirm": {"long": {"candidate_reads": "runs/x-{tag}", "panels": {}, "criteria": {}}},
    "budget": {"hard_cap": 50, "metered_start": 7.25},
}  # fmt: skip


def step(number: int, of: int = 1000, loss: float = 2.0) -> str:
    return f"ep0 step {number}/{of} loss {loss:.3f} kl 0.000 anchor 0.000 0.155s/rec"
