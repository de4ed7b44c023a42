"""What the example agents share: data in the form of trl, a model saved so that it can be graded, lines of a log."""

import json
from pathlib import Path
from typing import Any


def examples(data: Path) -> list[dict[str, str]]:
    """`train.jsonl` as prompts and completions, in the template that the grader asks with."""
    rows = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    return [
        {"prompt": f"Question: {row['question']}\nAnswer:", "completion": f" {row['answer']}<|endoftext|>"}
        for row in rows
    ]


def save(model: Any, tokenizer: Any, directory: Path) -> Path:
    """The whole model in `directory`, as safetensors."""
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def record(entry: dict[str, Any], done: str) -> None:
    """Say in the agent's log what an iteration did and what it scored. Nothing is written into the journal."""
    print(entry.get("score"), done, flush=True)
