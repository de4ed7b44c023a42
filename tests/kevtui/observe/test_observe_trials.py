"""A trial's steps, rate, state and resume point, from its log, its metrics and its watcher."""

import json
from typing import Any

import pytest
from checkout_files import step

from kevtui.observe.snapshot import TrialState


def test_a_rate_comes_from_the_arrival_of_lines_and_never_from_a_log_that_was_there(
    checkout: Any, watching: Any, clock: Any
) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    checkout.log("r9-a", *(step(number) for number in range(10, 110, 10)))
    observer = watching()
    trial = observer.observe().trials[0]
    assert (trial.step, trial.rate, trial.rate_note) == (100, None, "this log has no clock")
    for number in (110, 120, 130):
        clock.pass_(5)
        checkout.log("r9-a", step(number))
        trial = observer.observe().trials[0]
    assert trial.rate is not None and trial.rate.basis == "arrival"
    assert trial.rate.steps_per_minute == pytest.approx(120)
    assert trial.projection is not None and trial.projection.remaining_s == pytest.approx(435)


def test_a_finished_log_has_its_last_step_and_no_rate(checkout: Any, watching: Any) -> None:
    checkout.log("r9-a", step(990), "saved /runs/r9-a/00-trial-0/checkpoint")
    trial = watching().observe().trials[0]
    assert (trial.step, trial.steps, trial.finished, trial.rate, trial.projection) == (990, 1000, True, None, None)


def test_a_continuation_replaces_the_steps_it_does_again(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a", full_ft=True)
    checkout.log("r9-a", *(step(number, loss=3.0) for number in range(10, 70, 10)))
    observer = watching()
    observer.observe()
    checkout.log("r9-a", "resumed from /x: step 40, epoch 0, micro-batch 9", step(50, loss=1.0), step(60, loss=1.5))
    trial = observer.observe().trials[0]
    assert [(point.step, point.loss) for point in trial.points] == [
        (10, 3.0), (20, 3.0), (30, 3.0), (40, 3.0), (50, 1.0), (60, 1.5)]  # fmt: skip
    assert trial.resume_step == 40


def test_past_the_registered_total_is_said_and_nothing_is_negative(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching()
    for number in (980, 990, 1000, 1010):
        checkout.log("r9-a", step(number))
        trial = observer.observe().trials[0]
        clock.pass_(4)
    assert (trial.step, trial.steps, trial.projection) == (1010, 1000, None)
    assert trial.note == "10 past the registered 1,000 steps"


def test_the_trainers_own_times_give_the_rate_and_damaged_lines_are_named(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    rows = [{"rank": rank, "step": number, "steps": 100, "loss": 3 - number / 10 + rank, "t": 1e9 + number}
            for number in range(1, 11) for rank in (1, 0)]  # fmt: skip
    lines = [json.dumps(row).encode() for row in rows]
    lines[4:6] = [lines[4] + lines[5]]
    lines.insert(6, b'{"rank": 0, "st{"rank": 1}')
    lines.append(lines[-1])
    checkout.write("runs/r9-a/00-trial-0/metrics.jsonl", b"\n".join(lines) + b"\n")
    snapshot = watching().observe()
    trial = snapshot.trials[0]
    assert [point.step for point in trial.points] == list(range(1, 11))
    assert trial.points[0].loss == pytest.approx(2.9), "the lowest rank speaks for all"
    assert trial.rate is not None and trial.rate.basis == "metrics"
    assert trial.rate.steps_per_minute == pytest.approx(60)
    assert [finding.path for finding in snapshot.findings] == ["runs/r9-a/00-trial-0/metrics.jsonl"]
    assert "line 5: " in snapshot.findings[0].reason and "line 7: " in snapshot.findings[0].reason


@pytest.mark.parametrize(
    ("watched", "more", "state"),
    [
        ({"status": "running"}, {}, TrialState.RUNNING),
        ({"status": "running", "transient": 3}, {}, TrialState.UNREACHABLE),
        ({"status": "failed", "transient": 60}, {}, TrialState.UNREACHABLE),
        ({"status": "failed", "transient": 0}, {}, TrialState.FAILED),
        ({"status": "timeout"}, {"full_ft": True}, TrialState.TIMED_OUT),
        ({"status": "a new word"}, {}, TrialState.UNKNOWN),
    ],
)
def test_the_watchers_word_is_the_state(checkout: Any, watching: Any, watched: dict[str, Any], more: dict[str, Any],
                                        state: TrialState) -> None:  # fmt: skip
    checkout.spawn("r9-a", **more)
    checkout.watch("r9-a", watched)
    study = watching().observe().studies[0]
    assert study.trials[0].state is state
    assert study.settled is (state is TrialState.FAILED), "what may still cost stays committed"


@pytest.mark.parametrize(("call", "settled"), [("fc-earlier", False), (None, True)])
def test_the_end_of_an_earlier_call_leaves_its_study_committed(
    checkout: Any, watching: Any, call: str | None, settled: bool
) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "failed", "transient": 0, "call": call})
    assert watching().observe().studies[0].settled is settled


def test_a_trial_that_cannot_end_in_time_is_told_early(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a", timeout=3600)
    checkout.watch("r9-a", {})
    observer = watching()
    for number in (10, 20, 30):
        checkout.log("r9-a", step(number, of=100_000))
        snapshot = observer.observe()
        clock.pass_(10)
    assert [alert.code for alert in snapshot.alerts] == ["five-minute-check"]


def test_a_resume_point_with_half_its_shards_is_named_and_not_relied_on(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a", full_ft=True)
    resume = "runs/r9-a/00-trial-0/checkpoint/resume"
    point = {"dir": "step-0000300", "step": 300, "world": 3, "step_seconds": [0.5]}
    checkout.write(f"{resume}/step-0000300/rank0.pt", b"")
    checkout.write(f"{resume}/step-0000300/rank1.pt", b"x")
    checkout.write(f"{resume}/latest.json", point)
    snapshot = watching().observe()
    assert snapshot.trials[0].resume_step is None
    assert snapshot.findings[0].reason == "resume point 300 is incomplete: rank0.pt is empty, rank2.pt is absent"


def metric(step: int, at_s: float, **more: Any) -> str:
    return json.dumps({"step": step, "steps": 90, "t": 1_800_000_000 + at_s, "loss": 2.0, **more}) + "\n"


@pytest.mark.parametrize("attempt", [{}, {"attempt": 1}])
def test_a_metric_that_comes_late_or_twice_takes_its_place_and_moves_nothing_back(
    checkout: Any, watching: Any, attempt: dict[str, Any]
) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    path = checkout.root / "runs/r9-a/00-trial-0/metrics.jsonl"
    checkout.write("runs/r9-a/00-trial-0/metrics.jsonl", b"")
    observer = watching()
    for batch in ([10, 30], [20], [40, 50], [30], [10]):
        with path.open("a") as stream:
            stream.writelines(metric(step, step, **attempt) for step in batch)
        trial = observer.observe().trials[0]
    assert [point.step for point in trial.points] == [10, 20, 30, 40, 50]
    assert trial.step == 50 and trial.rate is not None and trial.rate.steps_per_minute == 60


def test_a_continuation_on_a_machine_whose_clock_is_behind_is_no_late_metric(checkout: Any, watching: Any) -> None:
    lines = [metric(step, step, attempt=1) for step in (10, 20, 30)]
    lines += [metric(step, step - 3600, attempt=2) for step in (20, 30, 40)]
    checkout.write("runs/r9-a/00-trial-0/metrics.jsonl", "".join(lines).encode())
    trial = watching().observe().trials[0]
    assert (trial.step, [point.step for point in trial.points]) == (40, [10, 20, 30, 40])
    unnumbered = [metric(step, step) for step in range(300)] + [metric(step, step - 3600) for step in range(200, 290)]
    checkout.write("runs/r9-b/00-trial-0/metrics.jsonl", "".join(unnumbered).encode())
    trial = next(trial for trial in watching().observe().trials if trial.study == "r9-b")
    assert trial.step == 289


def test_one_step_too_large_for_any_table_is_named_and_ends_no_pass(checkout: Any, watching: Any) -> None:
    text = metric(10, 10) + metric(2**63, 20) + metric(30, 30)
    checkout.write("runs/r9-a/00-trial-0/metrics.jsonl", text.encode())
    snapshot = watching().observe()
    assert [point.step for point in snapshot.trials[0].points] == [10, 30]
    assert snapshot.findings[0].reason.startswith("line 2: step: ")


def test_a_log_that_a_shell_redirected_as_utf16_is_named_for_what_it_is(checkout: Any, watching: Any) -> None:
    path = checkout.write("runs/r9-a/00-trial-0/train.log", f"{step(10)}\r\n".encode("utf-16"))
    observer = watching()
    observer.observe()
    with path.open("ab") as stream:
        stream.write(f"{step(20)}\r\n".encode("utf-16-le"))
    (finding,) = observer.observe().findings
    assert (finding.path, finding.reason[:11]) == ("runs/r9-a/00-trial-0/train.log", "UTF-16 text")
    checkout.write("runs/r9-a/00-trial-0/train.log", f"{step(20)}\n".encode())
    snapshot = observer.observe()
    assert (snapshot.findings, snapshot.trials[0].step) == ((), 20)
