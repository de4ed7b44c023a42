"""Workspaces with made-up rounds, for tests of the journal."""

import json
from pathlib import Path

from hand_clock import HandClock

from kev.autorl.journal.checking import check_journal
from kev.autorl.journal.compose import Order
from kev.autorl.journal.facts import read_facts
from kev.autorl.journal.findings import Finding
from kev.autorl.journal.writing import append_round
from kev.autorl.journal.written import read_written
from kev.autorl.workspace import Workspace

BASE = 1.5
SCRIPT = """from trl import GRPOConfig, GRPOTrainer

LR = 4e-4


def main():
    config = GRPOConfig(learning_rate=LR, max_steps=100, per_device_train_batch_size=64, beta=0.0)
    GRPOTrainer(model="m", args=config).train()


main()
"""


class MadeUpRun:
    """A run that a test makes: its clock goes on with each submission."""

    def __init__(self, directory: Path, *, script: str = SCRIPT) -> None:
        self.workspace = Workspace(directory)
        self.clock = HandClock()
        self.entries: list[dict[str, object]] = []
        for path in (self.workspace.code, self.workspace.reports):
            path.mkdir(parents=True)
        (self.workspace.code / "train.py").write_text(script)
        self.began = int(self.clock.now().timestamp())
        self.workspace.agent_log.write_text("")
        self.workspace.run_log.write_text("2027-02-03 04:05:06 | INFO | the agent began (process 7); 600 s are left\n")
        self.note(end_time=None)
        self.workspace.scores.write_text("[]")

    def note(self, **values: object) -> None:
        meta = {"start_time": self.began, "timeout_s": 600, "last_submit_time": None, "end_time": None}
        self.workspace.run_meta.write_text(json.dumps(meta | values))

    def submit(self, score: float | None, **more: object) -> int:
        self.clock.pass_time(61.5)
        number = len(self.entries) + 1
        self.entries.append(
            {
                "submission_id": number,
                "timestamp": self.clock.now().astimezone().replace(tzinfo=None).isoformat(),
                "model_path": f"output/v{number}",
                "score": score,
                "baseline_score": BASE,
                "improvement": None if score is None else round(score - BASE, 6),
                "elapsed_seconds": round(self.clock.now().timestamp() - self.began - 1.25, 2),
                **more,
            }
        )
        self.workspace.scores.write_text(json.dumps(self.entries))
        return number

    def append(self, **said: object) -> int:
        return append_round(self.workspace, Order(**said), self.clock).iteration  # type: ignore[arg-type]

    def findings(self) -> list[Finding]:
        return check_journal(read_written(self.workspace.reports), read_facts(self.workspace, self.clock))

    @property
    def summary(self) -> str:
        return self.workspace.summary.read_text()

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.workspace.summary_lines.read_text().splitlines()]


def three_rounds(directory: Path) -> MadeUpRun:
    """A run of three rounds, the second of which is worse than the first."""
    run = MadeUpRun(directory)
    for score in (31.25, 28.125, 96.875):
        run.append(submission=run.submit(score, label="gain"), what="a round of GRPO", why="the reward moves")
    return run
