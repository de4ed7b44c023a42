"""What answers are worth: metrics, intervals and temperatures of scored rows. Pure numpy; no file is touched here.

rows          a read as columns, checked once
serving       the same answers at another temperature
calibration   ECE, risk steps, top bins: from confidence and correctness alone
point         every metric by name
pairing       two checkpoints on the same questions; the clusters that resampling draws
resampling    cluster resamples as counts
bootstrap     differences with intervals
temperature   fits on a grid, their intervals, pools of held-out rows
"""

from kev.metrics.bootstrap import Baseline, Difference, paired_bootstrap
from kev.metrics.buckets import LENGTH_EDGES, LENGTH_METRICS, bucket_names, bucket_values, check_edges, tokens_of
from kev.metrics.columns import rows_from_json
from kev.metrics.cross_validation import CrossValidation, cross_validate
from kev.metrics.flips import paired_flip, permutation
from kev.metrics.ids import look_alikes
from kev.metrics.pairing import Clusters, Pairing, cluster, pair
from kev.metrics.point import PAIRED_METRICS, REPORT_METRICS, measure, metric
from kev.metrics.resampling import SAMPLES, SEED, Resamples
from kev.metrics.rows import EPSILON, Rows, concatenate, scored
from kev.metrics.serving import raw, served, tempered
from kev.metrics.temperature import (
    Pool,
    TemperatureFit,
    TemperatureInterval,
    fit_temperature,
    pool,
    temperature_interval,
)
from kev.metrics.unknowable import UnknowableReport, unknowable_report, unknowable_share

__all__ = [
    "EPSILON",
    "LENGTH_EDGES",
    "LENGTH_METRICS",
    "PAIRED_METRICS",
    "REPORT_METRICS",
    "SAMPLES",
    "SEED",
    "Baseline",
    "Clusters",
    "CrossValidation",
    "Difference",
    "Pairing",
    "Pool",
    "Resamples",
    "Rows",
    "TemperatureFit",
    "TemperatureInterval",
    "UnknowableReport",
    "bucket_names",
    "bucket_values",
    "check_edges",
    "cluster",
    "concatenate",
    "cross_validate",
    "fit_temperature",
    "look_alikes",
    "measure",
    "metric",
    "pair",
    "paired_bootstrap",
    "paired_flip",
    "permutation",
    "pool",
    "raw",
    "rows_from_json",
    "scored",
    "served",
    "temperature_interval",
    "tempered",
    "tokens_of",
    "unknowable_report",
    "unknowable_share",
]
