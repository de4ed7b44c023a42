"""A Snapshot made by hand that holds one of everything."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from kevtui.observe.snapshot import (
    Alert,
    Arm,
    Criterion,
    Event,
    Finding,
    Lease,
    LeaseState,
    Money,
    Point,
    Projection,
    Rate,
    ReadCell,
    Readout,
    Reads,
    ReadState,
    Severity,
    Snapshot,
    StageVerdict,
    Study,
    Trial,
    TrialState,
    Verdict,
    Watcher,
    WatcherState,
)

NOW = datetime(2026, 3, 1, 23, 58, 12, tzinfo=UTC)


@pytest.fixture
def snapshot() -> Snapshot:
    """Round 41 of a made-up session: a trial at risk, one that failed, one done and read, a damaged file."""
    at_risk = Trial(
        study="r41-27b",
        label="trial-0",
        index=0,
        state=TrialState.RUNNING,
        call="fc-01",
        attempts_used=1,
        attempts_allowed=3,
        step=420,
        steps=1140,
        loss=0.412,
        rate=Rate(6.1, 300.0, "metrics"),
        projection=Projection(7200.0, 7000.0, 7400.0, NOW.replace(hour=7), NOW.replace(hour=6), past_timeout=True),
        log_age_s=12.0,
        resume_step=410,
        work_at_risk_s=95.0,
        points=(Point(410, 0.42, 60.0, 6.0), Point(420, None, 158.0, 6.1)),
    )
    failed = Trial("r41-9b", "trial-0", 0, TrialState.FAILED, error="ran [/red] with \x1b[2J and \r", scoring=(3, 7))
    study = Study(
        "r41-27b", TrialState.RUNNING, "running", "H200:8", 28800.0, True, Decimal("50.12"), trials=(at_risk,)
    )
    other = Study("r41-9b", TrialState.FAILED, bound=Decimal("18.44"), settled=True, trials=(failed,))
    gain = Criterion(
        "1_hard",
        "primary",
        Verdict.PASS,
        "hard.acc.lower",
        ">",
        "0",
        0.0063,
        0.0,
        0.8612,
        0.8471,
        0.0141,
        0.0063,
        0.022,
    )
    absent = Criterion("3_ece", "calibration", Verdict.MISSING, "hard.ece.candidate", "<=", "hard.ece.parent")
    arm = Arm(
        "9b-a", "9b", True, True, parent="9b", trial="runs/r41-9b/00-trial-0", temperature=1.38,
        temperature_low=1.21, temperature_high=1.52, temperature_source="pool cal, 4,120 questions",
        unknowable=(0.02, None), criteria=(gain, absent), missing_optional=("candidate:runs/r41-9b-a-long",),
    )  # fmt: skip
    unread = Arm("27b-a", "27b", note="not read yet", missing=("candidate:runs/r41-27b-a-hard",))
    return Snapshot(
        taken_at=NOW,
        title="r41 · night-7",
        root="/somewhere",
        session="night-7",
        round=41,
        spec="experiments/rounds/r41.json",
        money=Money(
            authorization=Decimal("1000"), baseline=Decimal("1085.31568035"), metered=Decimal("1377.00991609"),
            spent=Decimal("291.69423574"), committed=Decimal("50.12"), reserve=Decimal("100"),
            headroom=Decimal("558.18576426"), reading_at=NOW, reading_age_s=180.0, source="night-7-state.json",
            readings=((NOW, Decimal("291.69423574")),),
        ),
        studies=(study, other),
        leases=(Lease("r41-27b/trial-0", LeaseState.FRESH, 22.0, 25.0, 3.0, True, 1, "fc-01"),),
        watcher=Watcher(WatcherState.ALIVE, 41.0, "r41-27b.watch.json"),
        reads=Reads(
            ("9b-a", "27b-a"),
            ("hard", "docs"),
            (
                ReadCell("9b-a", "hard", ReadState.LANDED, "runs/r41-9b-a-hard"),
                ReadCell("9b-a", "docs", ReadState.IN_FLIGHT, "runs/r41-9b-a-docs", 240.0, (50, 700)),
                ReadCell("27b-a", "hard", ReadState.FAILED, detail="gateway 503"),
            ),
        ),
        readout=Readout(41, "PLAN.md > Round 41", "runs/r41-readout/round41.json", 60.0, (arm, unread),
                        (("9b", "9b-a"), ("27b", None))),
        verdicts=(StageVerdict("9b", "tests", True, "runs/r41-verdict/9b-tests.json", (gain,)),
                  StageVerdict("9b", "locked")),
        events=(Event(Severity.WARNING, "projected past its timeout", NOW, "r41-27b/trial-0"),),
        findings=(Finding("runs/r41-8b.spawn.json", "cut short at line 1, column 9", 300.0),),
        alerts=(Alert("past-timeout", Severity.CRITICAL, "r41-27b/trial-0", "ends 60 min past its timeout"),),
    )  # fmt: skip
