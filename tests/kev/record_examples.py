"""One value of each shape of file, made up, as JSON gives it."""

from typing import Any

from kev.records.autoresearch import SessionRound
from kev.records.base import Record
from kev.records.billing import ScopedBilling
from kev.records.event import Event
from kev.records.intent import ReadIntent
from kev.records.lease import Lease
from kev.records.locked import LockedSummary
from kev.records.provenance import Provenance
from kev.records.read import ReadRecord
from kev.records.report import Report
from kev.records.result import Result
from kev.records.resume import ResumePoint
from kev.records.session import NightState, SessionState
from kev.records.snapshot import TrainingSnapshot
from kev.records.spawn import SpawnRecord
from kev.records.study_results import TrialResult
from kev.records.usage import Failure, Usage
from kev.records.watch import WatchRecord

SPAWN: dict[str, Any] = {
    "name": "r70-2b",
    "calls": {"trial-0": "fc-1", "trial-1": None},
    "attempts": {
        "trial-0": [{"nonce": "a" * 32, "call": None, "at": 1800000000.25, "abandoned": 1800001000},
                    {"nonce": "b" * 32, "call": "fc-1", "at": 1800002000.5}],
        "trial-1": [{"nonce": "c" * 32, "call": None, "at": 1800000060.0}],
    },
    "bound_usd": 123.45, "gpu": "H200:8", "timeout": 14400, "full_ft": True, "modal_retries": 0,
}  # fmt: skip

REPORT: dict[str, Any] = {
    "objective": -0.5, "paired_flip": None, "unknowable": None, "clean": {"n": 3, "error_rate_at_0_9": None},
    "tasks": {"alpha": {"n": 3, "acc": 0.5}}, "variants": {}, "heldout_tasks": {}, "temperature": None,
    "coverage": {"requested_records": 4, "evaluated_records": 3, "rejected_records": 1},
    "latency_ms": {"median": 9.5, "p95": 12}, "metric_policy": {"version": 2}, "remote": None,
}  # fmt: skip

EXAMPLES: list[tuple[type[Record], dict[str, Any]]] = [
    (SpawnRecord, SPAWN),
    (ReadRecord, {"name": "r70-hard", "kind": "benchmark", "run": "/runs/r70-2b/00-trial-0/checkpoint",
                  "suites": ["evals/hard-v2"], "flags": "--split calibration", "gpu": "H200", "timeout": 1800,
                  "bound_usd": 3.13, "at": 1800000000.5, "call": None}),
    (SpawnRecord, {"name": "old", "calls": {"trial-0": "fc-9"}, "bound_usd": 50, "timeout": 7200}),
    (WatchRecord, {"calls": {"trial-0": {"status": "running", "launched": False, "transient": 2, "call": "fc-1",
                                         "error": "half a pair \ud83d", "continuing_at": 1800000000.0},
                             "trial-1": {"status": "paused by hand", "note": 1}}}),
    (ReadIntent, {"launched_at": 1800000000.125, "commands": [["modal", "run", "x"], []]}),
    (Lease, {"nonce": "d" * 32, "attempt": None, "call_id": None, "started": 1800000000, "heartbeat": 1800000060.5,
             "ended": None, "previous": {"nonce": "e" * 32, "attempt": 1, "call_id": "fc-0", "heartbeat": 1.5,
                                         "ended": 2.0}}),
    (Usage, {"model": "m", "model_revision": "r", "started_at": "2027-01-02T03:04:05.6+00:00", "calls": 3,
             "input_tokens": 10, "output_tokens": 4, "estimated_usd": 0.00000042, "budget_usd": 1.0,
             "refusals": {"429": 1}, "sdk": "x"}),
    (Failure, {"coverage": {"requested_records": 4, "evaluated_records": 2}, "record_id": "a/1", "error_type": "E"}),
    (Report, REPORT),
    (Result, {**REPORT, "transfer": {**REPORT, "suite_sha256": "0" * 64},
              "gates": {"passed": False, "checks": {"complete_coverage": False}, "policy": "text"},
              "provenance": {"config": {"lr": 1e-4}, "config_sha256": "1" * 64}, "promotable": False,
              "training_resources": {"optimizer_steps": 9, "grad_norm": [{"epoch": 0, "steps": 9, "max": 812.5}]}}),
    (Provenance, {"config": {"seed": 0}, "config_sha256": "2" * 64, "environment": {"gpu": None}, "git_commit": "0"}),
    (ResumePoint, {"dir": "step-0000510", "step": 510, "step_seconds": [1.5, 2], "elapsed": 900.5, "run": {"kl": 0.0}}),
    (TrainingSnapshot, {"step": 114, "steps": 454, "epoch": 0.2511, "write_seconds": 88.0}),
    (TrialResult, {"id": "00-trial-0", "status": "failed", "error": "ValueError: x"}),
    (SessionRound, {"round": 70, "spec": "experiments/rounds/r70.json", "spend_before": 1.25, "budgets": 40,
                    "candidates": {"2b": None}, "at": "2027-01-01T00:00Z"}),
    (ScopedBilling, {"start": "2027-01-01T00:00:00Z", "end": "2027-01-03T00:00:00Z", "app_ids": ["ap-1"],
                     "observed_at": "2027-01-02T00:00:00+00:00", "total": "1.50000000", "provisional": True,
                     "response": [{"object_id": "ap-1", "interval": "2027-01-01T00:00:00Z", "cost": "1.50000000",
                                   "cost_by_resource": {"CPU": "0.50000001", "Memory": "1.00000000"}}]}),
    (SessionState, {"session": "s", "authorization_usd": 100, "baseline_usd": 7.125, "simulated": True,
                    "readings": [{"at": "2027-01-01T00:00:00Z", "metered_usd": 8.5, "source": "meter"}],
                    "studies": {"a": {"bound_usd": 9.5, "calls": {"trial-0": None}, "status": "running"}},
                    "ai_gateway": {"authorization_usd": 10, "spent_usd": 0.5}, "mood": "good"}),
    (NightState, {"night": "9", "authorization": {"modal_usd": 10}, "modal_metered_usd": {"baseline": 1.5}}),
    (LockedSummary, {"trial": "/runs/a/00-trial-0", "trial_result_sha256": None, "temperature": 1.5,
                     "suites": {"decision": {"suite": "evals/a", "clean": {"n": 5, "acc": 0.5}, "permutation": None}}}),
    (Event, {"at": "2027-01-01T00:00:00Z", "kind": "launch", "severity": "info", "subject": "a", "text": "b"}),
]  # fmt: skip


def row(**change: Any) -> dict[str, Any]:
    value = {"id": "a", "group": "g", "question": "q", "source": "s", "task": "t", "type": "noul", "variant": "clean",
             "keys": ["false", "true"], "label": 1, "p": [0.25, 0.75], "control_id": None}  # fmt: skip
    return {**value, **change}


def interval(delta: float) -> dict[str, Any]:
    return {"delta": delta, "ci95": [delta - 0.5, delta + 0.5]}


SKILLS: dict[str, Any] = {
    "arms": {
        "2b-a": {
            "trial": "runs/r70/00-trial-0", "parent": "runs/r60/00-trial-0", "temperature": 2.5,
            "parent_temperature": 1.5, "primary": interval(1), "hard_acc": [0.75, 0.5], "devtools_acc": [0.25, 0.125],
            "docs_acc": [0.9, 0.8], "hard_delta": interval(2), "devtools_delta": interval(3), "docs_delta": interval(4),
            "short": {"acc": interval(5), "brier": interval(6)}, "externals": {"semif": interval(7)},
            "pooled_external": interval(8), "unknowable_share": 0.0625,
            "hard_ece": {"candidate": 0.1, "parent": 0.2, "delta": interval(9)},
            "criteria": {"1_primary": True, "3_hard_ece": False}, "passed": False,
        },
        "9b-a": "not read yet",
    },
    "excluded_duplicate_ids": ["x/1"], "candidate_2b": None, "candidate_9b": "9b-a",
}  # fmt: skip

DOCUMENTS: dict[str, Any] = {
    "jev_docs_acc": 0.875,
    "arms": {
        "2b-d": {
            "trial": "runs/r71/00-trial-0", "parent": "runs/r60/00-trial-0", "temperature": 2.25, "docs": interval(1),
            "docs_acc": 0.9, "parent_docs_acc": 0.7, "docs_vs_jev": interval(2), "short": {"acc": interval(3)},
            "externals": {"wanli2": {**interval(4), "n": 60, "gating": True}}, "pooled_external": interval(5),
            "unknowable_share": 0, "criteria": {"1_docs": True}, "passed": True,
        }
    },
    "candidate_2b": "2b-d",
}  # fmt: skip

CURRENT: dict[str, Any] = {
    "round": 72, "registered": "PLAN.md", "drop_ids": [],
    "arms": {
        "2b-read": {
            "trial": None, "parent": "runs/p", "checkpoint": "/runs/x/checkpoint", "temperature": 1.5,
            "panels": {
                "hard": {
                    "n": 10, "excluded": 2,
                    "acc": {"candidate": 0.5, "parent": 0.25, "delta": 0.25, "ci95": [0.125, 0.375]},
                    "ece": {"candidate": 0.05, "parent": 0.0625},
                    "acc_8k_plus": {"candidate": None, "parent": None, "n": 0},
                    "by_length": {"edges": [8192], "tokens": "rows"},
                    "versus": {"jev": {"acc": {"reference": 0.5, "delta": 0.0, "ci95": [0, 0]}}},
                    "remark": "kept",
                }
            },
            "temperature_ci": {"level": 0.9, "lower": 1.25, "upper": 1.75, "samples": 2000},
            "unknowable": {"candidate": 0.25, "parent": None}, "criteria": {"a": None}, "missing": [],
            "missing_optional": ["candidate:runs/z"], "complete": True, "passed": False,
        },
        "2b-absent": {"trial": "runs/t", "parent": "runs/p", "missing": ["candidate:runs/t"], "complete": False,
                      "passed": None},
    },
    "ranking": {"2b": []}, "candidates": {"2b": None},
}  # fmt: skip


OLD_DOCS: dict[str, Any] = {
    "stage": "docs", "temperature": {"cand": 2.5, "parent": 1.5}, "acc": {"cand": 0.8, "parent": 0.6}, "n": 40,
    "acc_delta": interval(1), "brier_delta": interval(2), "criteria": {"docs_test": True}, "passed": True,
}  # fmt: skip
OLD_LOCKED: dict[str, Any] = {
    "stage": "locked", "temperature": {"cand": 2.5, "parent": 1.5}, "acc_delta": interval(1), "passed": False,
    "locked": {"cand": {"acc": 0.7, "brier": 0.4, "n": 50}, "parent": {"acc": 0.6, "brier": 0.5, "n": 50}},
    "criteria": {"a": False},
}  # fmt: skip
OLD_TESTS: dict[str, Any] = {
    "stage": "tests", "temperature": {"cand": 2.5, "parent": 1.5}, "criteria": {"pooled": True}, "passed": True,
    "pooled": interval(1), "hardtest": {"cand": 0.7, "parent": 0.6, "delta": interval(2)},
}  # fmt: skip


STATE: dict[str, Any] = {
    "session": "march", "authorization_usd": 400, "baseline_usd": 90.5, "cycle": "2027-03",
    "readings": [
        {"at": "2027-03-02T03:00:00+02:00", "metered_usd": 130.25, "source": "meter"},
        {"at": "2027-03-02T00:30:00Z", "metered_usd": 110.0},
    ],
    "studies": {
        "r70-2b": {"bound_usd": 20.5, "calls": {"trial-0": "fc-1"}, "status": "running"},
        "r70-9b": {"bound_usd": 30.0, "calls": {"trial-0": "fc-2"}, "status": "done, pulled"},
    },
    "reads": {"70/2b-a": {"bound_usd": 4.25, "status": "in flight"}, "70/2b-b": {"bound_usd": 5, "status": "landed"}},
    "decisions": ["publish?"], "ai_gateway": {"authorization_usd": 10, "spent_usd": 0.125},
}  # fmt: skip

NIGHT: dict[str, Any] = {
    "night": "8", "authorization": {"modal_usd": 200, "ai_gateway_usd": 5},
    "modal_metered_usd": {"2027-03-02T02:10Z": 70.125, "baseline_night_start": 50.125, "2027-03-02T01:00Z": 60.5},
    "ai_gateway_estimated_usd": {"runs/a": 0.25, "runs/b (died at 5/9)": 0.5, "total": 0.75},
    "studies": {
        "r80-a": {"bound_usd": 11.5, "calls": {"trial-0": "fc-1"}, "status": "done, pulled, read"},
        "r80-b": {"bound_usd": 12.5, "calls": {"trial-0": "fc-2"}, "status": "running"},
    },
    "running_bounds_usd": {"r80-b": 12.5}, "pending_decisions": ["merge?"], "prs": {"merged": {"1": "x"}},
}  # fmt: skip
