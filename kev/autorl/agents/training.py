"""What the example agents share: data in the form of trl, the settings of one CPU, and models handed in.

The agents keep the numbers that they train with; torch is loaded only by those that train.
"""

import json
import os
from pathlib import Path
from typing import Any

from kev.autorl.client import seconds_left, submit

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


def output() -> Path:
    """Where models go."""
    return Path(os.environ["WORKSPACE"]) / "output"


def load_base(**tokenizer: Any) -> tuple[Any, Any]:
    """The base model and its tokenizer, on one thread and with every random draw fixed."""
    import torch
    import transformers

    torch.set_num_threads(1)  # the grader works on the other core; threads that spin would stop both
    transformers.set_seed(0)
    base = os.environ["MODEL_PATH"]
    reader = transformers.AutoTokenizer.from_pretrained(base, **tokenizer)
    return transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), reader


def examples() -> list[dict[str, str]]:
    """`train.jsonl` as prompts and completions, in the template that the grader asks with."""
    path = Path(os.environ["DATA_PATH"]) / "train.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {"prompt": f"Question: {row['question']}\nAnswer:", "completion": f" {row['answer']}<|endoftext|>"}
        for row in rows
    ]


def hand_in(model: Any, tokenizer: Any, name: str, done: str) -> None:
    """Save the whole model in the output directory `name`, as safetensors, and submit it."""
    model.save_pretrained(output() / name)
    tokenizer.save_pretrained(output() / name)
    log_score(submit(f"output/{name}"), done)


def log_score(entry: dict[str, Any], done: str) -> None:
    """Say in the agent's log what an iteration did, and the grader's whole answer to it."""
    print(f"{done}: {entry}", flush=True)


def has_time_left() -> bool:
    """Whether another round can still be graded."""
    return seconds_left() >= SECONDS_FOR_GRADING
