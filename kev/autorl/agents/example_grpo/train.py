"""A short supervised warm start, then GRPO on exact answers, in rounds that are each submitted.

A base that never answers right earns no reward and learns nothing from it: the warm start gives GRPO something to
choose from, and ends before it has learned the task.
"""

import os
from pathlib import Path
from typing import Any

import torch
import transformers
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from kev.autorl.agents.training import examples, record, save
from kev.autorl.client import seconds_left, submit
from kev.autorl.evaluators.problems import number_in

WARM_STEPS = int(os.environ.get("EXAMPLE_WARM_STEPS", "85"))
ROUNDS = 2
STEPS = int(os.environ.get("EXAMPLE_STEPS", "100"))
SECONDS_FOR_GRADING = 30


def right(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 for a completion whose number is the right one, as the grader counts it."""
    said = [number_in(text) for text in completions]
    return [float(number == number_in(each)) for number, each in zip(said, answer, strict=True)]


def warm_up(model: Any, tokenizer: Any, rows: list[dict[str, str]], output: Path) -> None:
    """Supervised steps, few enough that the model is often wrong after them."""
    config = SFTConfig(
        output_dir=str(output / "trainer"),
        learning_rate=3e-3,
        max_steps=WARM_STEPS,
        per_device_train_batch_size=32,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=0,
    )
    SFTTrainer(model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer).train()


def main() -> None:
    torch.set_num_threads(1)  # the grader works on the other core; threads that spin would stop both
    transformers.set_seed(0)
    base, workspace = os.environ["MODEL_PATH"], Path(os.environ["WORKSPACE"])
    output = workspace / "output"
    tokenizer = transformers.AutoTokenizer.from_pretrained(base, padding_side="left")
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    rows = examples(Path(os.environ["DATA_PATH"]))
    warm_up(model, tokenizer, rows, output)
    _hand_in(model, tokenizer, output / "v1", f"supervised warm start of {WARM_STEPS} steps")
    prompts = Dataset.from_list([{"prompt": row["prompt"], "answer": row["completion"]} for row in rows])
    for number in range(2, 2 + ROUNDS):
        config = GRPOConfig(
            output_dir=str(output / "trainer"),
            learning_rate=4e-4,
            max_steps=STEPS,
            per_device_train_batch_size=64,
            num_generations=8,
            max_completion_length=20,
            beta=0.0,
            logging_steps=10,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            seed=number,
        )
        trainer = GRPOTrainer(
            model=model, reward_funcs=right, args=config, train_dataset=prompts, processing_class=tokenizer
        )
        trainer.train()
        _hand_in(model, tokenizer, output / f"v{number}", f"{STEPS} more steps of GRPO, from the weights of the last")
        if seconds_left() < SECONDS_FOR_GRADING:
            break


def _hand_in(model: Any, tokenizer: Any, directory: Path, done: str) -> None:
    path = save(model, tokenizer, directory)
    entry = submit(f"output/{path.name}")
    print(entry, flush=True)
    record(entry, done)


if __name__ == "__main__":
    main()
