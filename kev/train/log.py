"""What a run says of itself: lines for people in `train.log`, a record for every step in `metrics.jsonl`.

Both are appended, also by a continuation, which therefore writes steps again that the attempt before had done past
its last resume point; readers take the later attempt's.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kev import files
from kev.clock import Clock
from kev.errors import DamagedFile, NotFound
from kev.records.step_metrics import StepMetrics
from kev.text import visible

LINES = "train.log"
LINE_EVERY = 10
"""Optimizer steps between two progress lines; readers of logs know the shape and the pace."""

FLUSH_SECONDS = 0.5
"""Records wait at most this long for the disk: an fsync for each step would cost a small model half its speed."""


@dataclass(slots=True)
class RunLog:
    """The two files of one rank. Only rank 0 writes lines; every rank writes its steps."""

    directory: Path
    clock: Clock
    rank: int = 0
    attempt: int = 1
    echo: bool = True
    _waiting: list[bytes] = field(default_factory=list)
    _flushed: float = 0.0

    def begin(self, device: str, *, world: int, trained: int, threads: int) -> None:
        """The first line of an attempt, by which attempts are counted; `trained` are the parameters that move."""
        self.say(f"device={device} world={world} trainable params={trained / 1e6:.1f}M threads={threads}")

    def say(self, line: str) -> None:
        """A line for people, on standard output and in `train.log`."""
        if self.rank:
            return
        line = visible(line)
        files.append(self.directory / LINES, f"{line}\n".encode())
        if self.echo:
            print(line, flush=True, file=sys.stdout)

    def warn(self, line: str) -> None:
        """A line that a launcher's filter lets through."""
        self.say(f"!!! {line}")

    def record(self, values: Mapping[str, Any]) -> None:
        """One optimizer step; `values` are fields of `StepMetrics` and whatever else is known of it."""
        monotonic = self.clock.monotonic()
        record = StepMetrics.model_validate(
            {
                "at": self.clock.now().isoformat(),
                "monotonic": round(monotonic, 6),
                **values,
                "attempt": self.attempt,
                "rank": self.rank,
            }
        )
        self._waiting.append(files.dump_json_line(record.to_json()))
        if monotonic - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Put every record on the disk."""
        if self._waiting:
            files.append(self.directory / "metrics.jsonl", b"".join(self._waiting))
            self._waiting.clear()
        self._flushed = self.clock.monotonic()


def attempts_in(directory: Path) -> int:
    """How many attempts the log in `directory` tells of."""
    try:
        return len(re.findall(rb"^device=", files.read_bytes(directory / LINES), flags=re.MULTILINE))
    except (NotFound, DamagedFile):
        return 0


@dataclass(slots=True)
class ProgressLine:
    """The means since the last line, in the shape that logs of this kind have."""

    loss: float = 0.0
    kl: float = 0.0
    anchor: float = 0.0
    steps: int = 0

    def add(self, loss: float, kl: float, anchor: float) -> None:
        self.loss += loss
        self.kl += kl
        self.anchor += anchor
        self.steps += 1

    def line(self, *, epoch: int, step: int, steps: int, seconds_per_record: float) -> str:
        """The line, after which counting starts anew."""
        count = max(self.steps, 1)
        text = (
            f"ep{epoch} step {step}/{steps} loss {self.loss / count:.3f} kl {self.kl / count:.3f} "
            f"anchor {self.anchor / count:.3f} {seconds_per_record:.3f}s/rec"
        )
        self.loss = self.kl = self.anchor = 0.0
        self.steps = 0
        return text
