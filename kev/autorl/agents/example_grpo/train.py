"""A short supervised warm start, then GRPO on exact answers, in rounds that are each submitted.

A base that never answers right earns no reward and learns nothing from it: the warm start gives GRPO something to
choose from, and ends before it has learned the task.
"""

from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from kev.autorl.agents.training import ON_A_CPU, examples, hand_in, has_time_left, load_base, output
from kev.autorl.evaluators.problems import number_in

WARM_STEPS = 85
ROUNDS = 2
STEPS = 100


def right(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 for a completion whose number is the right one, as the grader counts it."""
    said = [number_in(text) for text in completions]
    return [float(number == number_in(each)) for number, each in zip(said, answer, strict=True)]


def warm_up(model: Any, tokenizer: Any, rows: list[dict[str, str]]) -> None:
    """Supervised steps, few enough that the model is often wrong after them."""
    config = SFTConfig(
        output_dir=str(output() / "trainer"),
        learning_rate=3e-3,
        max_steps=WARM_STEPS,
        per_device_train_batch_size=32,
        logging_steps=20,
        seed=0,
        **ON_A_CPU,
    )
    SFTTrainer(model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer).train()


def main() -> None:
    model, tokenizer = load_base(padding_side="left")
    rows = examples()
    warm_up(model, tokenizer, rows)
    hand_in(model, tokenizer, "v1", f"supervised warm start of {WARM_STEPS} steps")
    prompts = Dataset.from_list([{"prompt": row["prompt"], "answer": row["completion"]} for row in rows])
    for number in range(2, 2 + ROUNDS):
        config = GRPOConfig(
            output_dir=str(output() / "trainer"),
            learning_rate=4e-4,
            max_steps=STEPS,
            per_device_train_batch_size=64,
            num_generations=8,
            max_completion_length=20,
            beta=0.0,
            logging_steps=10,
            seed=number,
            **ON_A_CPU,
        )
        trainer = GRPOTrainer(
            model=model, reward_funcs=right, args=config, train_dataset=prompts, processing_class=tokenizer
        )
        trainer.train()
        hand_in(model, tokenizer, f"v{number}", f"{STEPS} more steps of GRPO, from the weights of the last")
        if not has_time_left():
            break


if __name__ == "__main__":
    main()
