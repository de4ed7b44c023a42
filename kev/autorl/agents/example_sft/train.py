"""Supervised fine-tuning in rounds: each goes on from the one before, and is submitted."""

from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from kev.autorl.agents.training import ON_A_CPU, course, evidence, examples, hand_in, has_time_left, load_base, output

ROUNDS = 3
STEPS = 70


def more_steps(model: Any, tokenizer: Any, data: Dataset, seed: int) -> str:
    """Train the model on; what became of its loss."""
    config = SFTConfig(
        output_dir=str(output() / "trainer"),
        learning_rate=3e-3,
        max_steps=STEPS,
        per_device_train_batch_size=32,
        warmup_steps=STEPS // 10,
        lr_scheduler_type="cosine",
        logging_steps=10,
        seed=seed,
        **ON_A_CPU,
    )
    trainer = SFTTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    return course(trainer, "loss")


def main() -> None:
    model, tokenizer = load_base()
    data = Dataset.from_list(examples())
    why = "the base seldom answers in the form that is graded, which examples show it"
    for number in range(1, ROUNDS + 1):
        loss = more_steps(model, tokenizer, data, seed=number)
        what = (
            f"{STEPS} steps of supervised fine-tuning from the {'base' if number == 1 else 'weights of the last round'}"
        )
        entry = hand_in(model, tokenizer, f"v{number}", what=what, why=why, progress=loss, source="train.py")
        why = f"goes on from the last weights, as planned, for {evidence(entry)}"
        if not has_time_left():
            break


if __name__ == "__main__":
    main()
