"""Snapshots as a real night would give them, made by hand, with the clock held still."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

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
    Section,
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

NOW = datetime(2026, 3, 14, 23, 58, tzinfo=UTC)

HOSTILE = "[/bold] [@click=app.quit]press[/] \x1b[2J\x1b]52;c;Zm9v\x07 \r\b end\\ \u202e half \ud83d"
"""Markup, a click action, screen, clipboard and direction controls, half a surrogate pair."""

SIGNS_THAT_ACT = "\x1b\x07\r\b\u202e\ud83d"


class HeldSource:
    """A source of Snapshots that a test feeds by hand."""

    pace_s = None

    def __init__(self, *snapshots: Snapshot) -> None:
        self._waiting = list(snapshots)
        self._last = snapshots[-1]
        self._changed = threading.Event()
        self.closed = threading.Event()

    def put(self, snapshot: Snapshot) -> None:
        self._waiting.append(snapshot)
        self._changed.set()

    def observe(self) -> Snapshot:
        if self._waiting:
            self._last = self._waiting.pop(0)
        return self._last

    def wait(self, timeout_s: float) -> bool:
        told = self._changed.wait(timeout_s)
        self._changed.clear()
        return told

    def close(self) -> None:
        self.closed.set()


def points(steps: int, base: float, *, slowing: float = 0.0) -> tuple[Point, ...]:
    return tuple(
        Point(
            step=10 * i,
            loss=1.1 / (1 + 0.08 * i) + 0.2 + 0.01 * ((i * 7) % 5),
            at_s=60.0 * i,
            steps_per_minute=base + 0.15 * ((i * 5) % 4) - slowing * max(0, i - steps // 2),
        )
        for i in range(1, steps + 1)
    )


def projection(finish: timedelta, timeout: timedelta | None, spread: timedelta) -> Projection:
    remaining, half = finish.total_seconds(), spread.total_seconds()
    return Projection(
        remaining_s=remaining,
        remaining_low_s=remaining - half,
        remaining_high_s=remaining + half,
        finish_at=NOW + finish,
        timeout_at=NOW + timeout if timeout else None,
        past_timeout=timeout is not None and finish > timeout,
    )


def running(study: str, index: int, step: int, steps: int, rate: float, finish: timedelta, **more: object) -> Trial:
    values: dict[str, object] = {
        "study": study,
        "label": f"trial-{index}",
        "index": index,
        "state": TrialState.RUNNING,
        "call": f"fc-{study}-{index}",
        "attempts_used": 1,
        "attempts_allowed": 3,
        "step": step,
        "steps": steps,
        "loss": 0.4127,
        "rate": Rate(rate, 600.0, "metrics"),
        "projection": projection(finish, timedelta(hours=7, minutes=42), timedelta(minutes=9)),
        "started_at": NOW - timedelta(hours=2),
        "log": f"runs/{study}/0{index}-trial-{index}/train.log",
        "log_age_s": 12.0,
        "resume_step": step - step % 200,
        "work_at_risk_s": 840.0,
        "points": points(step // 10, rate + 1.6, slowing=0.1),
    }
    return Trial(**(values | more))  # type: ignore[arg-type]


def studies() -> tuple[Study, ...]:
    big = Study(
        "r41-27b", TrialState.RUNNING, gpu="H200:8", timeout_s=36000, bound=Decimal("50.12"), full_weight=True,
        trials=(
            running("r41-27b", 0, 420, 1140, 6.1, timedelta(hours=7, minutes=54)),
            running("r41-27b", 1, 433, 1140, 7.4, timedelta(hours=5, minutes=57), log_age_s=18.0),
        ),
    )  # fmt: skip
    small = Study(
        "r41-9b", TrialState.TIMED_OUT, gpu="H200", timeout_s=10800, bound=Decimal("18.44"), full_weight=False,
        trials=(
            Trial("r41-9b", "trial-0", 0, TrialState.DONE, attempts_used=1, attempts_allowed=1, step=1564, steps=1564,
                  loss=0.3312, finished=True, note="read", points=points(40, 9.0)),
            Trial("r41-9b", "trial-1", 1, TrialState.TIMED_OUT, attempts_used=2, attempts_allowed=3, step=1210,
                  steps=1564, loss=0.3518, note="continuation waits for lease", points=points(30, 8.5)),
        ),
    )  # fmt: skip
    clockless = Study(
        "r41-2b", TrialState.RUNNING, gpu="H100", bound=Decimal("6.20"),
        trials=(
            Trial("r41-2b", "trial-0", 0, TrialState.RUNNING, attempts_used=1, attempts_allowed=1, step=88, steps=312,
                  loss=0.612, rate_note="this log has no clock", log_age_s=44.0,
                  points=tuple(Point(step=8 * i, loss=1.2 / i + 0.4) for i in range(1, 12))),
        ),
    )  # fmt: skip
    planned = Study("r41-4b", TrialState.PLANNED, status_text="registered", bound=Decimal("9.10"))
    return big, small, clockless, planned


def money() -> Money:
    return Money(
        authorization=Decimal("1000"),
        baseline=Decimal("794.12"),
        metered=Decimal("1085.81"),
        spent=Decimal("291.69"),
        committed=Decimal("150.36"),
        reserve=Decimal("100"),
        headroom=Decimal("457.95"),
        reading_at=NOW - timedelta(minutes=3),
        reading_age_s=180.0,
        source="night-7-state.json",
        burn_per_hour=Decimal("18.20"),
        exhausted_in_s=90600.0,
        gateway_spent=Decimal("0.07"),
        gateway_authorization=Decimal("100"),
    )


TAGS = ("breadth", "hard", "devtools", "docs", "semif", "v9", "r3cal")


def reads() -> Reads:
    cells = []
    for owner in ("9b-a", "9b-b", "parent-9b"):
        cells += [ReadCell(owner, tag, ReadState.LANDED, f"runs/{owner}-{tag}", 5400.0) for tag in TAGS]
    changes = {
        ("9b-a", "semif"): ReadCell("9b-a", "semif", ReadState.IN_FLIGHT, age_s=240.0),
        ("9b-a", "v9"): ReadCell("9b-a", "v9", ReadState.OVERDUE, age_s=5400.0),
        ("9b-b", "hard"): ReadCell("9b-b", "hard", ReadState.FAILED, detail="gateway 503"),
    }
    return Reads(
        ("27b-a", "9b-a", "9b-b", "parent-9b"),
        TAGS,
        tuple(changes.get((cell.owner, cell.tag), cell) for cell in cells),
    )


def criterion(name: str, kind: str, verdict: Verdict, value: float | None, op: str, threshold: float) -> Criterion:
    more: dict[str, float] = {}
    if value is not None:
        more = {"candidate": 0.8612, "parent": 0.8471, "delta": 0.0141, "lower": 0.0062, "upper": 0.0221}
    return Criterion(name, kind, verdict, "candidate", op, "threshold", value, threshold, **more)


def readout() -> Readout:
    good = (
        criterion("1_breadth_accuracy_lower", "primary", Verdict.PASS, 0.0062, ">", 0.0),
        criterion("2_short_brier_upper", "guard", Verdict.PASS, 0.0131, "<=", 0.02),
        criterion("3_kev_ece", "calibration", Verdict.FAIL, 0.0412, "<=", 0.0381),
    )
    half = (
        criterion("1_breadth_accuracy_lower", "primary", Verdict.PASS, 0.0113, ">", 0.0),
        criterion("2_short_brier_upper", "guard", Verdict.MISSING, None, "<=", 0.02),
        criterion("3_kev_ece", "calibration", Verdict.PASS, 0.0277, "<=", 0.0381),
    )
    arms = (
        Arm("9b-a", "9b", passed=False, complete=True, parent="parent-9b", temperature=1.38, temperature_low=1.31,
            temperature_high=1.46, temperature_source="r3cal+v9", criteria=good),
        Arm("9b-b", "9b", passed=False, parent="parent-9b", temperature=1.21, temperature_source="train rows",
            in_distribution=True, criteria=half, missing=("hard",)),
        Arm("27b-a", "27b", note="not read yet", parent="parent-27b", missing=TAGS),
    )  # fmt: skip
    return Readout(41, "2026-03-12", "runs/r41-readout.json", 720.0, arms, (("9b", None), ("27b", None)))


def verdicts() -> tuple[StageVerdict, ...]:
    stage = criterion("locked_accuracy_lower", "primary", Verdict.PASS, 0.0042, ">", 0.0)
    return (
        StageVerdict("2b", "development", True, "runs/r40-verdict.json", (stage,)),
        StageVerdict("2b", "locked", None),
    )


def events() -> tuple[Event, ...]:
    return (
        Event(Severity.INFO, "session night-7 opened, authorization $1,000.00", NOW - timedelta(hours=5)),
        Event(Severity.INFO, "pulled, 6 reads launched ≤ $31.20", NOW - timedelta(minutes=27), "r41-9b/0"),
        Event(Severity.CRITICAL, "read failed: gateway 503, retrying", NOW - timedelta(minutes=14), "9b-b/hard"),
        Event(Severity.WARNING, "projected 12 min past its timeout", NOW - timedelta(minutes=7), "r41-27b/0"),
    )


def night() -> Snapshot:
    """A night with something of everything: what runs well, what is late, what broke, what is missing."""
    leases = (
        Lease("r41-27b/trial-0", LeaseState.FRESH, 22.0, 24.0, -2.0, True, 1, "fc-1"),
        Lease("r41-27b/trial-1", LeaseState.FRESH, 18.0, 20.0, -2.0, True, 1, "fc-2"),
        Lease("r41-9b/trial-1", LeaseState.STALE, 660.0, 664.0, -4.0, True, 2, "fc-4"),
    )
    return Snapshot(
        taken_at=NOW,
        title="r41 · night-7",
        root="/home/kim/decisions",
        session="night-7",
        round=41,
        money=money(),
        studies=studies(),
        leases=leases,
        watcher=Watcher(WatcherState.ALIVE, 41.0, "runs/r41.watch.json"),
        reads=reads(),
        readout=readout(),
        verdicts=verdicts(),
        events=events(),
        findings=(Finding("runs/r41-1b.spawn.json", "empty", 1260.0),),
        alerts=(
            Alert("past-timeout", Severity.WARNING, "r41-27b/0", "projected 12 min past its timeout"),
            Alert("timed-out", Severity.CRITICAL, "r41-9b/1", "timed out at step 1210 of 1564, attempt 2 of 3"),
        ),
        changed=frozenset(Section),
    )


def calm() -> Snapshot:
    """A night in which nothing is wrong and little is there."""
    return Snapshot(
        taken_at=NOW, title="r42", root="/home/kim/decisions", round=42, money=Money(authorization=Decimal(500)),
        studies=(Study("r42-4b", TrialState.PLANNED, bound=Decimal("9.10")),),
    )  # fmt: skip


def crowd(number: int) -> Snapshot:
    """`number` running trials, one a study."""
    many = tuple(
        Study(f"s{i:04}", TrialState.RUNNING, bound=Decimal("3.10"),
              trials=(running(f"s{i:04}", 0, 400 + i, 2000, 7.5, timedelta(hours=3)),))
        for i in range(number)
    )  # fmt: skip
    return replace(night(), studies=many, leases=(), alerts=(), findings=())


def with_step(snapshot: Snapshot, study: str, index: int, step: int) -> Snapshot:
    """`snapshot` after one trial reported `step`."""

    def moved(one: Study) -> Study:
        if one.name != study:
            return one
        trials = [replace(t, step=step) if t.index == index else t for t in one.trials]
        return replace(one, trials=tuple(trials))

    return replace(snapshot, studies=tuple(moved(one) for one in snapshot.studies), changed=frozenset({"studies"}))


def hostile() -> Snapshot:
    """`night`, where every text that comes from a file is hostile."""
    study = Study(HOSTILE, TrialState.FAILED, HOSTILE, trials=(
        Trial(HOSTILE, HOSTILE, None, TrialState.FAILED, error=HOSTILE, note=HOSTILE),
        Trial(HOSTILE, "trial-1", 1, TrialState.RUNNING, rate_note=HOSTILE),
    ))  # fmt: skip
    arm = Arm(HOSTILE, HOSTILE, parent=HOSTILE, temperature=1.0, temperature_source=HOSTILE, missing=(HOSTILE,),
              criteria=(Criterion(HOSTILE, HOSTILE, Verdict.FAIL, op=HOSTILE),))  # fmt: skip
    return replace(
        night(),
        title=HOSTILE,
        polling=HOSTILE,
        money=replace(money(), source=HOSTILE),
        studies=(study,),
        leases=(Lease(f"{HOSTILE}/trial-1", LeaseState.STALE, 900.0),),
        reads=Reads((HOSTILE,), (HOSTILE,), (ReadCell(HOSTILE, HOSTILE, ReadState.FAILED, HOSTILE),)),
        readout=Readout(41, HOSTILE, HOSTILE, None, (arm,), ((HOSTILE, HOSTILE),)),
        verdicts=(StageVerdict(HOSTILE, HOSTILE, False, HOSTILE, arm.criteria),),
        events=(Event(Severity.CRITICAL, HOSTILE, NOW, HOSTILE),),
        findings=(Finding(HOSTILE, HOSTILE),),
        alerts=(Alert(HOSTILE, Severity.CRITICAL, HOSTILE, HOSTILE),),
    )
