"""GRPO on exact answers, from the warm start on, in rounds that are each submitted."""

from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from kev.autorl.agents.training import (
    ON_A_CPU,
    course,
    evidence,
    examples,
    hand_in,
    has_time_left,
    last_entry,
    load_base,
    output,
)
from kev.autorl.evaluators.problems import number_in

ROUNDS = 2
STEPS = 100


def right(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 for a completion whose number is the right one, as the grader counts it."""
    said = [number_in(text) for text in completions]
    return [float(number == number_in(each)) for number, each in zip(said, answer, strict=True)]


def more_steps(model: Any, tokenizer: Any, prompts: Dataset, seed: int) -> str:
    """Train the model on; what became of its reward."""
    config = GRPOConfig(
        output_dir=str(output() / "trainer"),
        learning_rate=4e-4,
        max_steps=STEPS,
        per_device_train_batch_size=64,
        num_generations=8,
        max_completion_length=20,
        beta=0.0,
        logging_steps=10,
        seed=seed,
        **ON_A_CPU,
    )
    trainer = GRPOTrainer(
        model=model, reward_funcs=right, args=config, train_dataset=prompts, processing_class=tokenizer
    )
    trainer.train()
    return course(trainer, "reward")


def main() -> None:
    model, tokenizer = load_base(output() / "v1", padding_side="left")
    prompts = Dataset.from_list([{"prompt": row["prompt"], "answer": row["completion"]} for row in examples()])
    entry = last_entry()
    for number in range(2, 2 + ROUNDS):
        why = f"where some answers of a group are right and others wrong, GRPO can tell them apart; {evidence(entry)}"
        reward = more_steps(model, tokenizer, prompts, seed=number)
        what = f"{STEPS} steps of GRPO from the weights of the last round; reward 1 for the exact number, else 0"
        entry = hand_in(model, tokenizer, f"v{number}", what=what, why=why, progress=reward, source="grpo.py")
        if not has_time_left():
            break


if __name__ == "__main__":
    main()
