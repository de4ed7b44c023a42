"""A user's `eval.py`, one sample at a time. Settings: `eval`, `samples`, `hidden`?, `items`, `max_new_tokens`,
`sample_seconds`, `memory_mb`.

`eval.py` defines `score(sample, output)`, from 0 to 1 or a truth value, and may define `prompt(sample)`; without it a
sample's `prompt` is asked. It runs in a sandbox: a process of its own with a limit of memory, that is ended when one
sample takes too long. A sample that fails scores 0 and is counted; where all fail there is no score.
"""

from typing import Any

from kev import files
from kev.autorl.engines import open_engine
from kev.autorl.evaluation import Evaluation
from kev.autorl.evaluators.order import Order
from kev.autorl.evaluators.sandbox import Failed, Sandbox
from kev.errors import DamagedFile, UsageError

KIND = "per sample"
HALF_MB = 64


def evaluate(order: Order) -> Evaluation:
    task = order.task
    if task.directory is None or "eval" not in task.settings or "samples" not in task.settings:
        raise UsageError(f"task {task.name}: eval and samples are missing; the names of two files of its folder")
    samples = _samples(order)
    sandbox = Sandbox(
        task.directory / str(task.settings["eval"]),
        seconds=order.number("sample_seconds", 10, most=3600),
        memory=order.number("memory_mb", 2048, least=HALF_MB) * 1024**2,
    )
    with sandbox:
        prompts = [sandbox.ask("prompt", sample) for sample in samples]
        if bad := next((prompt for prompt in prompts if not isinstance(prompt, str)), None):
            raise UsageError(f"{sandbox.path}: prompt() gave {bad!r:.100}, which is no text")
        engine = open_engine(order.engine, order.model, order.base)
        outputs = engine.generate(prompts, max_new_tokens=order.number("max_new_tokens", 256, most=8192))
        total, failures = 0.0, []
        for sample, output in zip(samples, outputs, strict=True):
            try:
                total += _share(sandbox.ask("score", sample, output))
            except Failed as error:
                failures.append(str(error))
    hopeless = len(failures) == len(samples)
    return order.evaluation(
        None if hopeless else 100 * total / len(samples),
        len(samples),
        KIND,
        error=f"no sample could be scored; the first: {failures[0]}" if hopeless else None,
        failed=len(failures),
        engine=engine.name,
        first_failure=failures[:1],
    )


def _samples(order: Order) -> list[dict[str, Any]]:
    assert order.task.directory is not None
    settings = order.task.settings
    own = order.split == "hidden" and "hidden" in settings
    path = order.task.directory / str(settings["hidden" if own else "samples"])
    samples: list[dict[str, Any]] = files.read_json_lines(path)
    if not samples or not all(isinstance(sample, dict) for sample in samples):
        raise DamagedFile(path, "a sample is an object on a line of its own, and there is at least one")
    if "hidden" not in settings:
        samples = order.halves(samples, [files.dump_json_line(sample).decode() for sample in samples])
    return order.sample(samples, order.number("items", 200))


def _share(value: Any) -> float:
    if isinstance(value, bool):
        return float(value)
    number = files.as_finite(value)
    if number is not None and 0 <= number <= 1:
        return number
    raise Failed(f"score() gave {value!r:.100}, which is no number from 0 to 1")
