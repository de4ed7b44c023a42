"""What the example agents share: data in the form of trl, the settings of one CPU, models handed in and recorded.

The agents keep the numbers that they train with; torch is loaded only by those that train.
"""

import os
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.client import seconds_left, submit
from kev.autorl.journal.compose import Order
from kev.autorl.journal.writing import append_round
from kev.autorl.workspace import Workspace
from kev.clock import SystemClock
from kev.errors import KevError

ON_A_CPU: dict[str, Any] = {
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
}
"""Settings of every trainer of trl: nothing kept but what is handed in, nothing reported, and no GPU."""
SECONDS_FOR_GRADING = 30


def workspace() -> Workspace:
    """The agent's own."""
    return Workspace(Path(os.environ["WORKSPACE"]))


def output() -> Path:
    """Where models go."""
    return workspace().output


def load_base(path: Path | None = None, **tokenizer: Any) -> tuple[Any, Any]:
    """The base model, or the one in `path`, and its tokenizer, on one thread and with every random draw fixed."""
    import torch
    import transformers

    torch.set_num_threads(1)  # the grader works on the other core; threads that spin would stop both
    transformers.set_seed(0)
    base = str(path or os.environ["MODEL_PATH"])
    reader = transformers.AutoTokenizer.from_pretrained(base, **tokenizer)
    return transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), reader


def examples() -> list[dict[str, str]]:
    """`train.jsonl` as prompts and completions, in the template that the grader asks with."""
    rows = files.read_json_lines(Path(os.environ["DATA_PATH"]) / "train.jsonl")
    return [
        {"prompt": f"Question: {row['question']}\nAnswer:", "completion": f" {row['answer']}<|endoftext|>"}
        for row in rows
    ]


def hand_in(
    model: Any, tokenizer: Any, name: str, *, what: str, why: str, progress: str, source: str
) -> dict[str, Any]:
    """Save the whole model in the output directory `name`, as safetensors, submit it, and record the round."""
    model.save_pretrained(output() / name)
    tokenizer.save_pretrained(output() / name)
    entry = submit(f"output/{name}")
    record(entry, what=what, why=why, progress=progress, source=source)
    return entry


def record(entry: dict[str, Any], *, what: str, why: str, source: str, progress: str = "") -> None:
    """Say in the agent's log and in the journal what a round did, why, and what the grader answered.

    A journal that cannot be written costs no training: the log says why.
    """
    print(f"{what}: {entry}", flush=True)
    order = Order(submission=entry["submission_id"], what=what, why=why, progress=progress, source=source)
    try:
        done = append_round(workspace(), order, SystemClock())
        print(f"journal: Iteration {done.iteration}", flush=True)
    except (KevError, OSError) as error:
        print(f"journal: {error}", flush=True)


def evidence(entry: dict[str, Any]) -> str:
    """What a round's reason rests on: the grader's answer to the one before."""
    number, score = entry["submission_id"], entry.get("score")
    if score is None:
        return f"scores.json has no score for submission {number}: {entry.get('error')}"
    return f"scores.json has {score:g} for submission {number}, where the base has {entry.get('baseline_score')}"


def last_entry() -> dict[str, Any]:
    """The last entry of scores.json."""
    return dict(files.read_json(workspace().scores)[-1])


def course(trainer: Any, name: str) -> str:
    """How a figure that the trainer logs began and ended."""
    found = [entry[name] for entry in trainer.state.log_history if name in entry]
    return f"{name} {found[0]:.4g} -> {found[-1]:.4g} over {trainer.state.global_step} steps" if found else ""


def has_time_left() -> bool:
    """Whether another round can still be graded."""
    return seconds_left() >= SECONDS_FOR_GRADING
