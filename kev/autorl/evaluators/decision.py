"""A frozen suite of this project: the share of right decisions. Settings: `suite`, `items`, `validation`, `hidden`.

A submission is a checkpoint of full weights with its `head.pt`, or a backbone without one, which is graded with a
fresh head, as the base is. `head.pt` is read as weights only.
"""

from pathlib import Path

from kev.autorl.evaluation import Evaluation
from kev.autorl.evaluators.order import Order
from kev.checkpoint import HEAD
from kev.data.record import DataRecord
from kev.errors import UsageError
from kev.predictors.local import LocalPredictor
from kev.predictors.prediction import Refusal, request_of
from kev.reads.records import select_partition
from kev.suite import open_suite

KIND = "decisions"
BATCH = 32


def evaluate(order: Order) -> Evaluation:
    directory = order.task.settings.get("suite")
    if not isinstance(directory, str):
        raise UsageError(f"task {order.task.name}: suite is missing; the directory of a frozen suite")
    suite = open_suite(Path(directory))
    if (sha256 := order.task.settings.get("suite_sha256", suite.sha256)) != suite.sha256:
        raise UsageError(f"task {order.task.name}: {directory} is not the suite with the hash {str(sha256)[:12]}")
    partitions = {"validation": "development", "hidden": "test"}
    split = str(order.task.settings.get(order.split, partitions[order.split]))
    selection = select_partition(suite, split, allow_test=order.split == "hidden")
    records = order.sample(selection.records, order.number("items", 200))
    from kev.predictors.checkpoint import CheckpointScorer

    scorer = CheckpointScorer(str(_checkpoint(order)), manifest=selection.manifest)
    predictor = LocalPredictor(scorer)
    right = questions = refused = 0
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        for record, outcome in zip(batch, predictor.predict([request_of(each) for each in batch]), strict=True):
            questions += len(record.questions)
            if isinstance(outcome, Refusal):
                refused += len(record.questions)
                continue
            right += _right(record, {name: answer.p for name, answer in outcome.answers.items()})
    return order.share(right, questions, KIND, refused=refused, suite=suite.sha256, partition=split)


def _right(record: DataRecord, answers: dict[str, tuple[float, ...]]) -> int:
    """How many questions have their label as the likeliest option; the first of equals is what was answered."""
    return sum(
        max(range(len(answers[name])), key=answers[name].__getitem__) == question.label_index
        for name, question in record.questions.items()
    )


def _checkpoint(order: Order) -> Path:
    """The model with its own head, or with a fresh one."""
    if (order.model / HEAD).exists():
        return order.model
    from kev.model.loading import new_model
    from kev.model.saving import save_checkpoint
    from kev.model.settings import Settings

    fresh = order.scratch / "fresh"
    save_checkpoint(fresh, new_model(str(order.model), Settings(lora=0)))
    return fresh
