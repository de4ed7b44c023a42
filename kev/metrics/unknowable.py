"""Questions whose deciding evidence was removed: no answer is right, so only how sure the model stays is reported."""

from dataclasses import dataclass

import numpy as np

from kev.errors import BadRows
from kev.metrics.calibration import CONFIDENT
from kev.metrics.rows import CLEAN, UNKNOWABLE, Flags, Floats, Rows

CONTROL = "unknowable_control"


@dataclass(frozen=True)
class UnknowableReport:
    """Confidence on unknowable rows, and on their controls: the same questions with the evidence left in.

    Figures about controls are None where the rows hold none that belongs to an unknowable one.
    """

    n: int
    mean_max_p: float
    share_at_0_9: float
    control_mean_max_p: float | None
    control_share_at_0_9: float | None
    control_acc: float | None
    paired_confidence_drop: float | None
    share_less_confident_than_control: float | None


def unknowable_share(rows: Rows) -> float | None:
    """The share of clean unknowable rows answered at p >= 0.9; None without any. `rows` as served, not yet scored."""
    confidence = rows.confidence[_unknowable(rows)]
    return float((confidence >= CONFIDENT).mean()) if len(confidence) else None


def unknowable_report(rows: Rows) -> UnknowableReport | None:
    """The report of a read that holds unknowable rows; None without any.

    Raises BadRows if a control is named by the same id twice.
    """
    unknown, control = rows.take(_unknowable(rows)), rows.take((rows.variants == CLEAN) & (rows.sources == CONTROL))
    if not len(unknown):
        return None
    drops = _drops(unknown, control)
    return UnknowableReport(
        n=len(unknown),
        mean_max_p=float(unknown.confidence.mean()),
        share_at_0_9=float((unknown.confidence >= CONFIDENT).mean()),
        control_mean_max_p=_mean(control.confidence),
        control_share_at_0_9=_mean((control.confidence >= CONFIDENT).astype(np.float64)),
        control_acc=_mean(control.correct),
        paired_confidence_drop=_mean(drops),
        share_less_confident_than_control=_mean((drops > 0).astype(np.float64)),
    )


def _unknowable(rows: Rows) -> Flags:
    return np.asarray((rows.variants == CLEAN) & (rows.sources == UNKNOWABLE), dtype=np.bool_)


def _drops(unknown: Rows, control: Rows) -> Floats:
    """Control confidence minus unknowable confidence, for every unknowable row whose control is there."""
    by_key: dict[tuple[str, str], float] = {}
    for row, key in enumerate(zip(control.ids, control.questions, strict=True)):
        if key in by_key:
            raise BadRows(f"{control.where(row)}: occurs twice among the controls")
        by_key[key] = float(control.confidence[row])
    pairs = zip(unknown.control_ids, unknown.questions, unknown.confidence, strict=True)
    drops = [
        by_key[control_id, question] - sure for control_id, question, sure in pairs if (control_id, question) in by_key
    ]
    return np.array(drops, dtype=np.float64)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
