"""A short supervised warm start, which ends before the task is learned.

A base that never answers right earns no reward and learns nothing from it: this gives GRPO something to choose from.
"""

from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from kev.autorl.agents.training import ON_A_CPU, course, examples, hand_in, load_base, output

STEPS = 85


def warm_up(model: Any, tokenizer: Any, rows: list[dict[str, str]]) -> str:
    """Supervised steps, few enough that the model is often wrong after them; what became of its loss."""
    config = SFTConfig(
        output_dir=str(output() / "trainer"),
        learning_rate=3e-3,
        max_steps=STEPS,
        per_device_train_batch_size=32,
        logging_steps=20,
        seed=0,
        **ON_A_CPU,
    )
    trainer = SFTTrainer(model=model, args=config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
    trainer.train()
    return course(trainer, "loss")


def main() -> None:
    model, tokenizer = load_base(padding_side="left")
    loss = warm_up(model, tokenizer, examples())
    what = f"supervised warm start of {STEPS} steps from the base, for GRPO to go on from"
    why = "a base that never answers right earns no reward, and GRPO learns nothing from groups without any"
    hand_in(model, tokenizer, "v1", what=what, why=why, progress=loss, source="warm_up.py")


if __name__ == "__main__":
    main()
