"""Supervised fine-tuning in rounds: each goes on from the one before, and is submitted."""

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from kev.autorl.agents.training import ON_A_CPU, examples, hand_in, has_time_left, load_base, output

ROUNDS = 3
STEPS = 70


def main() -> None:
    model, tokenizer = load_base()
    data = Dataset.from_list(examples())
    for number in range(1, ROUNDS + 1):
        config = SFTConfig(
            output_dir=str(output() / "trainer"),
            learning_rate=3e-3,
            max_steps=STEPS,
            per_device_train_batch_size=32,
            warmup_steps=STEPS // 10,
            lr_scheduler_type="cosine",
            logging_steps=25,
            seed=number,
            **ON_A_CPU,
        )
        SFTTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer).train()
        done = f"round {number} of supervised fine-tuning, {STEPS} more steps from the weights of the last"
        hand_in(model, tokenizer, f"v{number}", done)
        if not has_time_left():
            break


if __name__ == "__main__":
    main()
