"""What an agent is asked to do: a task by name, or a folder with a `task.json`.

`task.json` holds `name`, `evaluator` (one of EVALUATORS), `settings` for it, and a `description` for the agent. A run
works with its own copy: what is changed in the folder afterwards decides nothing.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.workspace import check_name
from kev.errors import DamagedFile, NotFound, UsageError
from kev.records.base import StrictRecord, read_record
from kev.spelling import nearest

TASK = "task.json"
EVALUATORS = {
    "arithmetic": "kev.autorl.evaluators.arithmetic",
    "decision": "kev.autorl.evaluators.decision",
    "per_sample": "kev.autorl.evaluators.per_sample",
    "opencompass": "kev.autorl.evaluators.opencompass",
}
FILE_SETTINGS = {"arithmetic": ("file",), "per_sample": ("eval", "samples", "hidden")}
"""Settings that name a file of the task's folder."""
EXTRA_FILES = {"decision": frozenset({"head.pt"})}
"""Files of a submission that an evaluator reads beside those of every model."""


class TaskRecord(StrictRecord):
    """`task.json`."""

    name: str
    evaluator: str
    description: str = ""
    settings: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task, and the folder that its files are in; None for one that needs none."""

    record: TaskRecord
    directory: Path | None = None

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def settings(self) -> dict[str, Any]:
        return self.record.settings or {}

    @property
    def extra_files(self) -> frozenset[str]:
        return EXTRA_FILES.get(self.record.evaluator, frozenset())

    def file_names(self) -> list[str]:
        """The files that the evaluator reads, by the settings that name them."""
        return [str(self.settings[key]) for key in FILE_SETTINGS.get(self.record.evaluator, ()) if key in self.settings]


BUILT_IN = {
    "arithmetic": TaskRecord(
        name="arithmetic",
        evaluator="arithmetic",
        description=(
            "Word problems with small numbers. A prompt is `Question: <text>\\nAnswer:`; what counts is the number "
            "after `####` in the completion, or the last number in it. `data/train.jsonl` has questions with answers "
            "in the form of GSM8K. The score is the share of right answers, from 0 to 100."
        ),
        settings={"items": 200, "steps": 1},
    ),
}


def open_task(name: str) -> Task:
    """The task called `name`, or that of the folder `name`. Raises NotFound, DamagedFile or UsageError."""
    directory = Path(name)
    if name in BUILT_IN:
        return Task(BUILT_IN[name])
    if not directory.is_dir():
        raise NotFound(f"task {name!r}: no folder of that name, and no such task{nearest(name, BUILT_IN)}")
    record = read_record(directory / TASK, TaskRecord)
    if record.evaluator not in EVALUATORS:
        raise DamagedFile(directory / TASK, f"evaluator {record.evaluator!r:.100}: one of {', '.join(EVALUATORS)}")
    check_name(record.name, "task")
    task = Task(record, directory)
    for each in task.file_names():
        if Path(each).name != each:
            raise UsageError(f"{directory / TASK}: {each!r:.100} is not the name of a file in this folder")
        if not (directory / each).is_file():
            raise NotFound(f"{directory / each}: no such file, though {TASK} names it")
    return task


def freeze(task: Task, target: Path) -> Task:
    """The run's own copy of a task under `target`; one that is there already is kept. Raises what reading raises."""
    if not (target / TASK).exists():
        for name in task.file_names():
            assert task.directory is not None
            files.write_atomic(target / name, files.read_bytes(task.directory / name))
        files.write_atomic(target / TASK, files.dump_json(task.record.to_json()))
    record = read_record(target / TASK, TaskRecord)
    return Task(record, target)


def sha256_of(task: Task) -> str:
    """Of everything that decides what is asked: the record and the files it names."""
    digest = hashlib.sha256(files.dump_json(task.record.to_json()))
    for name in task.file_names():
        assert task.directory is not None
        digest.update(hashlib.sha256(files.read_bytes(task.directory / name)).digest())
    return digest.hexdigest()
