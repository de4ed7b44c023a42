"""What a grading process is told, and how it draws items from secrets that no agent has."""

import hmac
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kev.autorl.evaluation import Evaluation, Split
from kev.autorl.tasks import Task
from kev.errors import UsageError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Order:
    """One grading. `secret` decides which items there are; `scratch` is a private directory that is removed after."""

    task: Task
    model: Path
    base: Path
    split: Split
    seed: int
    secret: bytes
    engine: str
    scratch: Path

    def draw(self, *words: str) -> random.Random:
        """A random stream for these words, the same in every grading of the season and in no other."""
        return random.Random(hmac.digest(self.secret, "\0".join(words).encode(), "sha256"))

    def number(self, key: str, default: int, *, least: int = 1, most: int = 1_000_000) -> int:
        """A setting. Raises UsageError for what is no whole number in its range."""
        value = self.task.settings.get(key, default)
        if type(value) is not int or not least <= value <= most:
            raise UsageError(
                f"task {self.task.name}: {key} {value!r:.50} is no whole number from {least:,} to {most:,}"
            )
        return value

    def halves(self, items: Sequence[Item], keys: Sequence[str]) -> list[Item]:
        """This split's half of items that have no split of their own: by a keyed hash, so nobody can tell which."""
        sides = {"validation": 0, "hidden": 1}
        side = sides[self.split]
        return [
            item
            for item, key in zip(items, keys, strict=True)
            if hmac.digest(self.secret, key.encode(errors="surrogatepass"), "sha256")[0] % 2 == side
        ]

    def sample(self, items: Sequence[Item], size: int) -> list[Item]:
        """The draw of this seed: `size` of the items, or all where there are fewer."""
        stream = self.draw("sample", self.split, str(self.seed))
        return stream.sample(list(items), size) if size < len(items) else list(items)

    def share(self, right: int, items: int, kind: str, **summary: Any) -> Evaluation:
        """The share of right answers as an evaluation."""
        score = 100 * right / items if items else None
        return self.evaluation(score, items, kind, right=right, **summary)

    def evaluation(
        self, score: float | None, items: int, kind: str, *, error: str | None = None, **summary: Any
    ) -> Evaluation:
        """What this grading found; `summary` is what a score alone does not say."""
        return Evaluation(
            benchmark=self.task.name,
            model_path=str(self.model),
            score=score,
            items=items,
            accuracy_summary={"items": items, **summary},
            eval_type=kind,
            error=error,
        )
