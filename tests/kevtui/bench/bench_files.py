"""Workspaces and results as the bench leaves them, small and made up."""

import json
from pathlib import Path
from typing import Any

from kev.autorl.results import append_result
from kev.autorl.scores import improvement_of
from kev.records.autorl import ResultRow

STARTED = 1_800_000_000
HOSTILE = "\x1b[2J\x9b31m[/] [@click=app.quit]x[/]\u202e"

SUMMARY = """# 运行总结
## Iteration 1 (2027-01-15 08:10, 耗时 412s)
- **状态**: ✅ 成功
- **Score**: 24.0 | Improvement: +4.0 | Best: 24.0 (iter 1)
- **训练类型**: SFT
- **关键配置**: lr=1e-5, epochs=1
- **做了什么**: warm start
- **为什么**: the base leaves the marker out
- **问题/进步**: loss 2.1 to 1.4
- **关键代码**:
```
## Iteration 9 (2027-01-15 08:10, 耗时 1s)
```
"""
FULL_WIDTH = (
    "## Iteration 2 （2027-01-15 08:30，耗时 812s）\r\n- **状态**：❌ 失败 (exit_code=1)\r\n- **训练类型**：GRPO\r\n"
)


def entry(number: int, score: float | None, **more: Any) -> dict[str, Any]:
    return {
        "submission_id": number, "timestamp": "2027-01-15T08:00:00.000001", "model_path": f"output/v{number}",
        "score": score, "baseline_score": 20.0, "improvement": improvement_of(score, 20.0),
        "elapsed_seconds": 100.0 * number,
    } | more  # fmt: skip


def workspace(directory: Path, scores: list[dict[str, Any]], **meta: Any) -> Path:
    (directory / "reports").mkdir(parents=True)
    write_meta(directory, **meta)
    (directory / "scores.json").write_text(json.dumps(scores))
    return directory


def write_meta(directory: Path, **meta: Any) -> None:
    facts = {"start_time": STARTED, "timeout_s": 3600, "last_submit_time": None, "end_time": None} | meta
    (directory / "run_meta.json").write_text(json.dumps(facts))


def result(path: Path, run_id: str, agent: str, task: str, improvement: float | None, **more: Any) -> None:
    append_result(
        path,
        ResultRow(
            run_id=run_id, timestamp="2027-01-15T09:00:00+00:00", task=task, agent=agent, base_model="tiny",
            baseline=20.0, best_score=None if improvement is None else 20.0 + improvement, improvement=improvement,
            submissions=3, duration_s=1200, success=improvement is not None, **({"workspace": ""} | more),
        ),
    )  # fmt: skip
