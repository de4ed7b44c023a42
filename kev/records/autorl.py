"""The files of a bench run: `run_meta.json`, the entries of `scores.json`, the rows of `results.csv`, sealed copies.

They are read from agents' workspaces and from other benches too, so reading is tolerant; `kev.autorl.scores` and
`kev.autorl.results` read the files as a whole.
"""

from typing import Literal

from kev.records.base import Number, Record, StrictRecord, UnixSeconds

Rules = Literal["strict", "compat"]
"""How a run was graded: as docs/autorl.md says, or with the looser routes that older agents expect."""

Label = Literal["gain", "tie", "loss", "no change", "foreign", "error"]
"""What a submission is, against the base and its noise.

`tie` lies inside the interval of the base, `no change` has the weights of the base, `foreign` is not made from it.
"""


class RunMeta(Record):
    """`run_meta.json`: when a run began and how long it may last."""

    start_time: UnixSeconds
    timeout_s: Number
    last_submit_time: UnixSeconds | None = None
    end_time: UnixSeconds | None = None

    def duration(self, now: float) -> float:
        """Seconds that the run has lasted, or did last; never below zero, whatever a wall clock did in between."""
        return max(0.0, (now if self.end_time is None else self.end_time) - self.start_time)


class ScoreEntry(StrictRecord):
    """One entry of `scores.json`. A score that is no finite number is None here, and `not_finite` says so."""

    submission_id: int
    timestamp: str | None = None
    """ISO 8601, local and without an offset: for people. `elapsed_seconds` is what to compute with."""
    model_path: str = ""
    score: float | None = None
    """0 to 100."""
    baseline_score: float | None = None
    improvement: float | None = None
    """`score - baseline_score` to 6 decimals; None without either."""
    elapsed_seconds: float | None = None
    """Since the run began, by one monotonic clock."""
    error: str | None = None
    label: str | None = None
    """A `Label`, where our grader wrote the entry."""

    not_finite: bool = False
    """True where the file held NaN or an infinity for the score."""

    @property
    def is_valid(self) -> bool:
        """Whether the score may be ranked: a score beside an error is none, 0 included."""
        return self.score is not None and self.error is None


class ResultRow(StrictRecord):
    """A row of `results.csv`; what a run does not have is None, and an empty cell in the file."""

    run_id: str
    timestamp: str
    """ISO 8601 with an offset."""
    task: str
    agent: str
    driver_model: str | None = None
    """The model that drives the agent."""
    base_model: str
    baseline: float | None = None
    best_score: float | None = None
    improvement: float | None = None
    submissions: int = 0
    duration_s: int = 0
    success: bool = False
    workspace: str = ""
    verdict: str | None = None
    """Of the final, on hidden items and three seeds: `gain`, `tie`, `loss`, `no change` or why there is none."""
    final_score: float | None = None
    final_baseline: float | None = None
    rules: Rules = "strict"


class SealedManifest(StrictRecord):
    """`manifest.json` beside the sealed copy of a submission: what was copied."""

    sha256: str
    """Of the lines `name:hash` of all files as they were submitted."""
    files: dict[str, str]
    left_out: list[str] = []
    remarks: list[str] = []
