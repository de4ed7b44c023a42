"""Criteria and rank keys: whether each names values that the report will have."""

from dataclasses import dataclass

from kev.records.spec import Criterion, Panel, RankKey, Rule, Stage
from kev.rounds.checks.panels import LENGTH_METRICS, bucket_names, panel_edges
from kev.rounds.document import JsonPath
from kev.rounds.subject import Subject
from kev.spelling import nearest

OPERATORS = (">", ">=", "<", "<=")
ORDERS = ("desc", "asc")
VALUES = ("candidate", "parent")
INTERVAL = ("delta", "lower", "upper")
UNKNOWABLE = "unknowable"


@dataclass(frozen=True, slots=True)
class ValuePath:
    """`<panel>.<metric>[_<bucket>].<field>`, taken apart; `metric` is "" for `unknowable.<field>`."""

    panel: str
    metric: str
    field: str


def parse_value_path(text: str) -> ValuePath | None:
    """The parts of a path; None for text that is none. A panel's name may hold dots."""
    parts = text.rsplit(".", 2)
    if len(parts) == 2 and parts[0] == UNKNOWABLE:
        return ValuePath(UNKNOWABLE, "", parts[1])
    if len(parts) != 3 or not all(parts):
        return None
    return ValuePath(*parts)


def check_criteria(subject: Subject) -> None:
    """Every criterion of the rule and of the stages, and the rank keys."""
    for place, stage in subject.stages():
        for name, criterion in stage.criteria.items():
            where = (*place, "criteria", name)
            if criterion.op not in OPERATORS:
                message = f"there is no operator {criterion.op!r}; there is {', '.join(OPERATORS)}"
                subject.problems.add("unknown-operator", (*where, "op"), message)
            for key, path in criterion_paths(criterion, where):
                _check_path(subject, stage, path, key, "gates on")
    for number, rank_key in enumerate(subject.spec.rule.rank):
        where = ("rule", "rank", number)
        if rank_key.order not in ORDERS:
            message = f"there is no order {rank_key.order!r}{nearest(rank_key.order, ORDERS)}"
            subject.problems.add("unknown-order", (*where, "order"), message)
        for key, path in _rank_paths(rank_key, where):
            _check_path(subject, subject.spec.rule, path, key, "ranks by")


def criterion_paths(criterion: Criterion, where: JsonPath) -> list[tuple[JsonPath, str]]:
    """The paths that a criterion reads, with their places."""
    paths = _paths(criterion.left, (*where, "left"))
    return [*paths, ((*where, "right"), criterion.right)] if isinstance(criterion.right, str) else paths


def _rank_paths(key: RankKey, where: JsonPath) -> list[tuple[JsonPath, str]]:
    return _paths(key.by, (*where, "by"))


def _paths(value: str | list[str], where: JsonPath) -> list[tuple[JsonPath, str]]:
    if isinstance(value, str):
        return [(where, value)]
    return [((*where, index), path) for index, path in enumerate(value)]


def _check_path(subject: Subject, stage: Rule | Stage, text: str, where: JsonPath, use: str) -> None:
    problems = subject.problems
    path = parse_value_path(text)
    if path is None:
        problems.add("bad-path", where, f"{text!r} is not <panel>.<metric>.<value>, nor unknowable.<value>")
        return
    if path.panel == UNKNOWABLE and not path.metric:
        if stage.unknowable is None and (*_place_of(stage, where), "unknowable") in subject.dropped:
            return
        if stage.unknowable is None:
            problems.add("unknown-panel", where, f"{text} needs an unknowable read, and none is named")
        elif path.field not in VALUES:
            problems.add("unknown-value", where, f"unknowable has no {path.field!r}{nearest(path.field, VALUES)}")
        return
    names = subject.names(*(str(part) for part in _place_of(stage, where)), "panels")
    if path.panel not in names:
        problems.add("unknown-panel", where, f"there is no panel {path.panel!r}{nearest(path.panel, names)}")
        return
    if path.panel not in stage.panels:
        return
    panel = stage.panels[path.panel]
    if panel.optional:
        problems.add("optional-gates", where, f"{use} the panel {path.panel}, which is optional")
    for problem in _value_problems(panel, path):
        problems.add("unknown-value", where, problem)


def _place_of(stage: Rule | Stage, where: JsonPath) -> JsonPath:
    return ("rule",) if isinstance(stage, Rule) else where[:2]


def _value_problems(panel: Panel, path: ValuePath) -> list[str]:
    buckets = bucket_names(edges) if (edges := panel_edges(panel)) else []
    if path.metric in panel.metrics:
        known: tuple[str, ...] = (*VALUES, *INTERVAL)
    elif path.metric in panel.report or path.metric in {f"{m}_{bucket}" for m in LENGTH_METRICS for bucket in buckets}:
        known = VALUES
    else:
        computed = [*panel.metrics, *panel.report, *(f"{m}_{bucket}" for m in LENGTH_METRICS for bucket in buckets)]
        return [f"the panel {path.panel} does not compute {path.metric!r}{nearest(path.metric, computed)}"]
    if path.field in known:
        return []
    if path.field in INTERVAL:
        why = "is only reported" if path.metric in panel.report else "is a length bucket"
        return [f"{path.metric} of {path.panel} {why}, and has no {path.field}; it has {' and '.join(VALUES)}"]
    return [f"{path.panel}.{path.metric} has no {path.field!r}{nearest(path.field, known)}"]
