"""Criteria and rank keys: whether each names values that the report will have."""

from kev.document import JsonPath
from kev.errors import UsageError
from kev.records.spec import Criterion, Panel, RankKey, Rule, Stage
from kev.rounds.checks.panels import LENGTH_METRICS, bucket_names, panel_edges
from kev.rounds.criteria import OPERATORS, SIDES, UNKNOWABLE, Path, parse_path
from kev.rounds.subject import Subject
from kev.spelling import nearest

ORDERS = ("desc", "asc")


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
    try:
        path = parse_path(text)
    except UsageError as error:
        problems.add("bad-path", where, str(error))
        return
    place = _place_of(stage, where)
    if path.panel == UNKNOWABLE and not path.metric:
        if stage.unknowable is None and (*place, "unknowable") not in subject.dropped:
            problems.add("unknown-panel", where, f"{text} needs an unknowable read, and none is named")
        return
    names = subject.names(*(str(part) for part in place), "panels")
    if path.panel not in names:
        problems.add("unknown-panel", where, f"there is no panel {path.panel!r}{nearest(path.panel, names)}")
        return
    if path.panel not in stage.panels:
        return
    panel = stage.panels[path.panel]
    if panel.optional:
        problems.add("optional-gates", where, f"{use} the panel {path.panel}, which is optional")
    problem = _value_problem(panel, path)
    if problem is not None:
        problems.add("unknown-value", where, problem)


def _place_of(stage: Rule | Stage, where: JsonPath) -> JsonPath:
    return ("rule",) if isinstance(stage, Rule) else where[:2]


def _value_problem(panel: Panel, path: Path) -> str | None:
    buckets = bucket_names(edges) if (edges := panel_edges(panel)) else []
    columns = [f"{metric}_{bucket}" for metric in LENGTH_METRICS for bucket in buckets]
    if path.column in panel.metrics or (path.column in columns and path.field in SIDES):
        return None
    if path.column in panel.report:
        only = f"{path.column} of {path.panel} is only reported: it has {' and '.join(SIDES)}, and no {path.field}"
        return None if path.field in SIDES else only
    known = [*panel.metrics, *panel.report, *columns]
    return f"the panel {path.panel} does not compute {path.column!r}{nearest(path.column, known)}"
