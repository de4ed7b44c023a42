"""A tiny causal model that really generates, made and trained here."""

from pathlib import Path
from typing import Any

from kev.autorl.evaluators.problems import training_problems

STEPS = 1


def make_base(directory: Path) -> Path:
    """Random weights, and a tokenizer that knows the words of the problems."""
    from kev.model.tiny_base import make_tiny_base

    texts = [f"Question: {each.question}\nAnswer: {each.answer}" for each in training_problems(300, STEPS)]
    return make_tiny_base(directory, texts=texts, vocabulary=600, hidden=64, layers=2)


def teach(base: Path, target: Path, *, steps: int, answer: str) -> Path:
    """The base after a few steps on answering always the same: enough to tell a trained model from its base."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(base)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    problems = training_problems(200, STEPS)
    for step in range(steps):
        texts = [f"Question: {each.question}\nAnswer: {answer}" for each in problems[step * 8 % 192 :][:8]]
        batch = tokenizer([f"{text}<|endoftext|>" for text in texts], return_tensors="pt", padding=True)
        batch.pop("token_type_ids", None)
        labels = batch["input_ids"].clone()
        labels[batch["attention_mask"] == 0] = -100
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target
