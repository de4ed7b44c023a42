"""Every kind of alert, from the files that give rise to it, and what makes it the same one or another."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from checkout_files import step
from hypothesis import given
from hypothesis import strategies as st

from kevtui.observe.alerts import find_alerts
from kevtui.observe.snapshot import (
    Alert,
    Lease,
    LeaseState,
    Money,
    Projection,
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
    Watcher,
    WatcherState,
)
from kevtui.observe.trial_alerts import StudyAlerts

NOW = datetime(2027, 3, 28, 4, 0, tzinfo=UTC)


def found(**parts: Any) -> tuple[Alert, ...]:
    values: dict[str, Any] = {
        "money": Money(), "studies": (), "of_studies": (), "leases": (), "watcher": Watcher(WatcherState.NONE),
        "reads": Reads(), "readout": None, "verdicts": (), "findings": (),
    }  # fmt: skip
    return find_alerts(**(values | parts))


def codes(snapshot: Snapshot) -> dict[str, Alert]:
    return {alert.code: alert for alert in snapshot.alerts}


def metrics(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def row(number: int, at: float, **more: Any) -> dict[str, Any]:
    return {"rank": 0, "step": number, "steps": 5000, "loss": 1.0, "grad_norm": 1.0, "t": 1e9 + at, **more}


@pytest.fixture
def running(checkout: Any, watching: Any, clock: Any) -> Any:
    """Writes metrics of one running trial, and observes."""
    checkout.spawn("r9-a", timeout=10**7)
    checkout.watch("r9-a", {})
    observer = watching()
    held: list[dict[str, Any]] = []

    def write(*rows: dict[str, Any]) -> Snapshot:
        held.extend(rows)
        clock.pass_(30)
        checkout.write("runs/r9-a/00-trial-0/metrics.jsonl", metrics(*held))
        snapshot: Snapshot = observer.observe()
        return snapshot

    return write


def test_steps_that_come_far_more_slowly_than_usual_are_told_and_an_evaluation_between_them_is_not(
    running: Any,
) -> None:
    paces = [8.0] * 60
    paces[30] = paces[50] = 1500.0
    at, rows = 0.0, []
    for number, pace in enumerate(paces, start=1):
        at += pace
        rows.append(row(number, at))
    assert "slowed" not in codes(running(*rows))
    slow = [row(61 + number, at + 40.0 * (number + 1)) for number in range(5)]
    alert = codes(running(*slow))["slowed"]
    assert alert.subject == "r9-a/trial-0"
    assert "slowed to 1.5 steps/min" in alert.text and "usually 7.5" in alert.text
    back = [row(66 + number, at + 200.0 + 8.0 * (number + 1)) for number in range(5)]
    assert "slowed" not in codes(running(*back))


def test_a_loss_and_a_gradient_that_are_no_numbers_are_critical(running: Any) -> None:
    assert codes(running(*(row(number, 8.0 * number) for number in range(1, 40)))) == {}
    lost = codes(running(*(row(number, 8.0 * number, loss=None, grad_norm=None) for number in range(40, 44))))
    assert lost["loss-not-finite"].severity is lost["gradient-norm"].severity is Severity.CRITICAL
    assert "since step 40" in lost["loss-not-finite"].text
    over = codes(running(*(row(number, 8.0 * number) for number in range(44, 50))))
    assert over["loss-not-finite"].severity is Severity.WARNING
    assert "was not a finite number at step 40" in over["loss-not-finite"].text


def test_a_figure_that_is_not_logged_is_no_figure_that_is_lost(running: Any) -> None:
    rows = [row(number, 8.0 * number) for number in range(1, 60)]
    for each in rows:
        del each["loss"], each["grad_norm"]
    assert codes(running(*rows)) == {}


def test_a_line_that_holds_nan_is_damage_and_a_loss_that_is_lost(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    lines = metrics(*(row(number, 8.0 * number) for number in range(1, 5)))
    lines += b'{"rank": 0, "step": 5, "steps": 5000, "loss": NaN, "t": 1000000040}\n'
    checkout.write("runs/r9-a/00-trial-0/metrics.jsonl", lines)
    alerts = codes(watching().observe())
    assert "since step 5" in alerts["loss-not-finite"].text
    assert "NaN" in alerts["damaged"].text


@pytest.mark.parametrize("word", ["nan", "inf", "-Infinity", "NaN"])
def test_a_log_line_alone_tells_that_the_loss_is_lost(checkout: Any, watching: Any, word: str) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching()
    checkout.log("r9-a", step(10), f"ep0 step 20/1000 loss {word} kl 0.000")
    assert "since step 20" in codes(observer.observe())["loss-not-finite"].text
    checkout.log("r9-a", "resumed from /x: step 10, epoch 0, micro-batch 9", step(20))
    assert "loss-not-finite" not in codes(observer.observe()), "what a continuation does again is void"


def test_a_log_without_losses_and_one_that_ended_say_nothing(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a", labels=2)
    checkout.watch("r9-a", {}, {"status": "done"})
    checkout.log("r9-a", "ep0 step 10/1000", "ep0 step 20/1000 loss ???")
    checkout.log("r9-a", "ep0 step 10/1000 loss nan", trial="01-trial-1")
    assert "loss-not-finite" not in codes(watching().observe())


@given(st.decimals(0, 4000, places=2), st.decimals(1, 2000, places=2))
def test_of_the_shares_of_the_authorization_only_the_highest_stands(spent: Decimal, of: Decimal) -> None:
    shares = [a.code for a in found(money=Money(authorization=of, spent=spent)) if a.code.startswith("spent")]
    reached = [percent for percent in (75, 90, 100) if spent * 100 >= of * percent and spent]
    assert shares == [f"spent-{percent}" for percent in reached[-1:]]


def test_the_whole_authorization_is_critical_and_the_gateway_has_its_own() -> None:
    money = Money(authorization=Decimal(100), spent=Decimal(100), gateway_spent=Decimal(76),
                  gateway_authorization=Decimal(100))  # fmt: skip
    assert [(a.id, a.severity) for a in found(money=money)] == [
        ("spent-100:money", Severity.CRITICAL), ("gateway-75:AI gateway", Severity.WARNING)]  # fmt: skip
    assert found(money=Money(authorization=Decimal(0), spent=Decimal(0))) == ()


def test_a_candidate_is_ready_until_its_stages_are_decided_or_one_is_failed() -> None:
    readout = Readout(arms=(), candidates=(("9b", "9b-a"), ("4b", None)))
    open_, done = StageVerdict("9b", "tests"), StageVerdict("9b", "tests", True, "runs/r/9b-tests.json")
    (alert,) = found(readout=readout, verdicts=(open_, StageVerdict("4b", "tests")))
    assert (alert.id, alert.severity, alert.condition) == ("candidate:9b", Severity.INFO, "9b-a")
    assert "to be confirmed: tests" in alert.text
    assert found(readout=readout, verdicts=(done,)) == ()
    assert found(readout=readout, verdicts=(replace(done, passed=False), StageVerdict("9b", "locked"))) == ()
    assert [a.id for a in found(readout=readout)] == ["candidate:9b"]


def test_two_failed_reads_of_one_arm_are_two_alerts() -> None:
    cells = tuple(ReadCell("9b-a", tag, ReadState.FAILED, detail="503") for tag in ("hard", "docs"))
    assert [a.id for a in found(reads=Reads(cells=cells))] == ["read-failed:9b-a/hard", "read-failed:9b-a/docs"]


def test_a_stale_lease_matters_only_while_somebody_should_hold_the_trial() -> None:
    lease = Lease("s/trial-0", LeaseState.STALE, 1000.0)
    for state, said in (
        (TrialState.RUNNING, 1),
        (TrialState.TIMED_OUT, 1),
        (TrialState.DONE, 0),
        (TrialState.FAILED, 0),
    ):
        study = Study("s", state, trials=(Trial("s", "trial-0", 0, state),))
        assert len(found(leases=(lease,), studies=(study,))) == said, state


def test_the_worst_stand_first_each_once_and_what_is_acknowledged_last() -> None:
    alerts = (Alert("a", Severity.WARNING, "x", "mild"), Alert("a", Severity.CRITICAL, "x", "grave"),
              Alert("b", Severity.CRITICAL, "y", "known"), Alert("c", Severity.INFO, "z", "good"))  # fmt: skip
    shown = found(of_studies=alerts, acknowledged=lambda alert: alert.code == "b")
    assert [(a.text, a.acknowledged) for a in shown] == [("grave", False), ("good", False), ("known", True)]


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=60))
def test_a_projection_that_wavers_at_its_timeout_is_told_once(wavering: list[float]) -> None:
    known = StudyAlerts()
    said = []
    for seconds in (30.0, *wavering):
        finish = NOW + timedelta(hours=1, seconds=seconds)
        timeout = NOW + timedelta(hours=1)
        projection = Projection(3600.0, 3500.0, 3700.0, finish, timeout, past_timeout=finish > timeout)
        trial = Trial("s", "trial-0", 0, TrialState.RUNNING, attempts_used=1, attempts_allowed=3, projection=projection)
        alerts = list(known.find((Study("s", TrialState.RUNNING, trials=(trial,)),), now=NOW))
        said.append([alert.code for alert in alerts])
    assert said == [["past-timeout"]] * len(said)
    well = replace(projection, finish_at=NOW + timedelta(minutes=50), past_timeout=False)
    study = Study("s", TrialState.RUNNING, trials=(replace(trial, projection=well),))
    assert list(known.find((study,), now=NOW)) == []


def test_an_acknowledgement_in_the_file_holds_for_its_condition_and_severity_only(
    checkout: Any, watching: Any, clock: Any
) -> None:
    def acknowledge(condition: str, severity: str) -> None:
        known = {"at": 1.0, "who": "kim@desk", "severity": severity, "condition": condition}
        entry = {"severity": severity, "condition": condition, "raised_at": 1.0, "acknowledged": known}
        checkout.write("runs/alerts.json", {"alerts": {"trial-failed:r9-a/trial-0": entry}})
        clock.pass_(10)

    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "failed", "error": "out of memory"})
    observer = watching()
    assert [a.acknowledged for a in observer.observe().alerts] == [False]
    acknowledge("out of memory", "warning")
    assert [a.acknowledged for a in observer.observe().alerts] == [True]
    acknowledge("disk full", "critical")
    assert [a.acknowledged for a in observer.observe().alerts] == [False]
    acknowledge("out of memory", "info")
    assert [a.acknowledged for a in observer.observe().alerts] == [False], "it is graver than what was acknowledged"
    checkout.write("runs/alerts.json", b"{")
    clock.pass_(10)
    snapshot = observer.observe()
    assert [finding.path for finding in snapshot.findings] == ["runs/alerts.json"]


def test_no_figure_in_an_alert_is_nan(running: Any) -> None:
    rows = [row(number, 8.0 * number, grad_norm=0.0) for number in range(1, 40)]
    snapshot = running(*rows, *(row(number, 8.0 * number, grad_norm=5.0) for number in range(40, 50)))
    assert "gradient-norm" not in codes(snapshot), "nothing is usual about zero"
    assert not any(math.isnan(d.value or 0) for trial in snapshot.trials for d in trial.divergences)
