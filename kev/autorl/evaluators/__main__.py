"""One grading: an order as a line of JSON on stdin, the result in a file. It ends when its input does.

The input stays open as long as the grader lives, so that a grader that is killed leaves no grading behind.
"""

import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.evaluation import Evaluation
from kev.autorl.evaluators.order import Order
from kev.autorl.tasks import EVALUATORS, Task, TaskRecord
from kev.errors import KevError
from kev.text import shorten, visible


def main() -> int:
    """Exit code 0 where the result was written, an error of the grading included."""
    said: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    result = evaluate(said)
    files.write_atomic(Path(said["result"]), result.model_dump_json().encode())
    return 0


def evaluate(said: dict[str, Any]) -> Evaluation:
    """The evaluation that an order asks for; whatever goes wrong is its error."""
    task = Task(TaskRecord.model_validate(said["task"]), Path(said["files"]) if said["files"] else None)
    order = Order(
        task=task,
        model=Path(said["model"]),
        base=Path(said["base"]),
        split=said["split"],
        seed=said["seed"],
        secret=bytes.fromhex(said["secret"]),
        engine=said["engine"],
        scratch=Path(said["scratch"]),
    )
    try:
        return import_module(EVALUATORS[task.record.evaluator]).evaluate(order)  # type: ignore[no-any-return]
    except KevError as error:
        words = str(error)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
    return Evaluation(benchmark=task.name, model_path=said["model"], score=None, error=shorten(visible(words), 2000))


def _end_with_input() -> None:
    while os.read(0, 65_536):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main())
