"""Whole passes over a small checkout: what its files say is what the Snapshot says."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kevtui.observe.observer import Observer
from kevtui.observe.snapshot import LeaseState, ReadState, Section, TrialState, Verdict, WatcherState
from kevtui.observe.target import resolve


def step(number: int, of: int = 1000, loss: float = 2.0) -> str:
    return f"ep0 step {number}/{of} loss {loss:.3f} kl 0.000 anchor 0.000 0.155s/rec"


# ------------------------------------------------------------------------------------------------------ money


def test_committed_counts_every_unsettled_bound_and_headroom_what_is_left(checkout: Any, watching: Any) -> None:
    checkout.state("dusk", studies={"r9-a": {"bound_usd": 12.5, "status": "running"},
                                    "r9-b": {"bound_usd": 99, "status": "done, read"}})  # fmt: skip
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    money = watching("dusk").observe().money
    assert (money.spent, money.committed, money.reserve) == (Decimal("10.25"), Decimal("12.5"), Decimal(20))
    assert money.headroom == Decimal("200") - 20 - Decimal("10.25") - Decimal("12.5")
    assert money.committed_complete and money.reading_stale and money.source == "dusk-state.json"


def test_a_settled_study_commits_nothing_more(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "failed", "error": "x"})
    money = watching().observe().money
    assert (money.committed, money.committed_complete) == (Decimal(0), True)


def test_money_nobody_stated_is_unknown_and_not_zero(checkout: Any, watching: Any) -> None:
    money = watching().observe().money
    assert (money.committed, money.spent, money.headroom, money.authorization) == (None, None, None, None)


def test_an_empty_state_file_is_damage_and_no_fresh_session(checkout: Any, watching: Any) -> None:
    checkout.write("runs/dusk-state.json", b"")
    snapshot = watching("dusk").observe()
    assert snapshot.money.headroom is None and not snapshot.money.committed_complete
    assert [(finding.path, finding.reason) for finding in snapshot.findings] == [("runs/dusk-state.json", "empty")]


# ----------------------------------------------------------------------------------------------------- damage

BAD = [b"", b"null", b"[]", b"{", b"\xff\xfe{}", b'{"a": NaN}', b"[" * 5000, b'{"name": "x\xe9"}']


@pytest.mark.parametrize("damage", BAD)
@pytest.mark.parametrize("name", [
    "runs/r9-bad.spawn.json", "runs/r9-a.watch.json", "runs/r9-a/00-trial-0/result.json", "runs/dusk-state.json",
    "runs/r9-a/00-trial-0/checkpoint/resume/latest.json",
    "volumes/kev-leases/r9-a/00-trial-0/attempt.json"])  # fmt: skip
def test_one_bad_file_is_named_and_everything_else_stays(checkout: Any, watching: Any, name: str,
                                                         damage: bytes) -> None:  # fmt: skip
    checkout.spawn("r9-a")
    checkout.log("r9-a", step(10))
    checkout.write(name, damage)
    snapshot = watching().observe()
    shown = next(study for study in snapshot.studies if study.name == "r9-a")
    assert (shown.bound, shown.trials[0].step) == (Decimal("12.5"), 10)
    assert [finding.path for finding in snapshot.findings] == [name]
    hides_money = name.endswith((".spawn.json", "-state.json"))
    assert snapshot.money.committed_complete is not hides_money


def test_the_last_good_value_stays_in_use_with_its_age(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    observer = watching()
    observer.observe()
    clock.pass_(20)
    checkout.write("runs/r9-a.spawn.json", b'{"name": "r9-')
    snapshot = observer.observe()
    assert snapshot.studies[0].bound == Decimal("12.5")
    assert snapshot.findings[0].last_good_age_s == 20
    assert not snapshot.money.committed_complete
    checkout.spawn("r9-a", bound_usd=14)
    snapshot = observer.observe()
    assert (snapshot.studies[0].bound, snapshot.findings) == (Decimal(14), ())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_a_file_torn_at_any_byte_never_ends_a_pass(checkout: Any, data: st.DataObject) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "done"})
    checkout.state("dusk")
    checkout.lease("r9-a", heartbeat=checkout.clock.now().timestamp())
    names = ["runs/r9-a.spawn.json", "runs/r9-a.watch.json", "runs/dusk-state.json",
             "volumes/kev-leases/r9-a/00-trial-0/attempt.json"]  # fmt: skip
    name = data.draw(st.sampled_from(names))
    path = checkout.root / name
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:cut] + data.draw(st.sampled_from([b"", b"\0" * 8, b"\xff", b'"'])))
    snapshot = Observer(resolve(".", root=checkout.root, cwd=checkout.root), clock=checkout.clock).observe()
    assert [finding.path for finding in snapshot.findings] == [name]


def test_text_from_files_is_carried_whole(checkout: Any, watching: Any) -> None:
    error = "a\x1b[2J[/b] [@click=app.quit]\\ \ud83d \u202e\r\n"
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "failed", "error": error})
    assert watching().observe().trials[0].error == error


# ----------------------------------------------------------------------------------------------------- trials


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


# ---------------------------------------------------------------------------------- leases, watchers, our own sleep


def test_a_lease_is_judged_by_how_long_its_heartbeat_stood_still(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    ahead = clock.now().timestamp() + 600
    checkout.lease("r9-a", heartbeat=ahead)
    observer = watching()
    lease = observer.observe().leases[0]
    assert (lease.state, lease.unchanged_s, lease.stamp_age_s) == (LeaseState.CLOCK_AHEAD, None, None)
    clock.pass_(60)
    checkout.lease("r9-a", heartbeat=ahead + 60)
    lease = observer.observe().leases[0]
    assert (lease.state, lease.skew_s, lease.nonce_matches) == (LeaseState.FRESH, 600, True)
    states = []
    for _ in range(40):
        clock.pass_(25)
        states.append(observer.observe().leases[0].state)
    assert LeaseState.LATE in states and states[-1] is LeaseState.STALE


def test_a_lease_of_another_attempt_than_the_ledgers_newest_is_told(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.lease("r9-a", heartbeat=clock.now().timestamp(), nonce="f" * 32)
    snapshot = watching().observe()
    assert snapshot.leases[0].nonce_matches is False
    assert "lease-nonce" in {alert.code for alert in snapshot.alerts}


def test_our_own_suspension_is_not_anothers_silence(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    checkout.lease("r9-a", heartbeat=clock.now().timestamp())
    observer = watching()
    before = observer.observe()
    assert before.watcher.state is not WatcherState.DOWN
    clock.pass_(7200)
    after = observer.observe()
    assert after.leases[0].state is not LeaseState.STALE
    assert after.watcher.state is before.watcher.state


def test_a_watcher_that_rests_with_work_left_is_down(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching()
    observer.observe()
    for _ in range(20):
        clock.pass_(25)
        snapshot = observer.observe()
    assert snapshot.watcher.state is WatcherState.DOWN
    assert snapshot.alerts[0].code == "watcher-down"


def test_a_watcher_lives_by_its_own_sign_of_life_though_nothing_of_its_studies_changes(
    checkout: Any, watching: Any, clock: Any
) -> None:
    def pass_made(number: int, state: str = "watching") -> None:
        checkout.write("runs/dusk-watcher.json", {
            "round": 9, "process": 77, "host": "h", "at": clock.now().timestamp(), "passes": number, "state": state,
        })  # fmt: skip

    checkout.state("dusk", studies={"r9-a": {"status": "running"}})
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching("dusk")
    for number in range(20):
        pass_made(number)
        clock.pass_(25)
        snapshot = observer.observe()
    assert snapshot.watcher.state is WatcherState.ALIVE
    for _ in range(20):
        clock.pass_(25)
        snapshot = observer.observe()
    assert snapshot.watcher.state is WatcherState.DOWN
    pass_made(21, "done")
    clock.pass_(1)
    assert observer.observe().watcher.state is WatcherState.FINISHED


# -------------------------------------------------------------------------------------------- reads and read-outs

SPEC: dict[str, Any] = {
    "round": 9, "registered": "a sample plan", "gpu": "H200",
    "studies": {"r9-a": {"plan": "p.json", "suite": "evals/s", "transfer": "evals/t", "gpu": "H200", "timeout": 3600,
                         "budget": 20}},
    "reads": {"hard": {"suite": "evals/hard"}, "docs": {"suite": "evals/documents"}, "wide": {"suite": "evals/w"}},
    "parents": {"4b": {"trial": "runs/p/00-trial-0", "reads": {"hard": "runs/p-hard"}}},
    "arms": {"4b-a": {"trial": "runs/r9-a/00-trial-0", "parent": "4b"}, "4b-b": {"checkpoint": "/x", "parent": "4b"}},
    "rule": {"panels": {"hard": {"reads": ["hard", "docs", "wide"], "metrics": ["acc"]}},
             "criteria": {"1_gain": {"left": "hard.acc.lower", "op": ">", "right": 0},
                          "3_ece": {"left": "hard.ece.candidate", "op": "<=", "right": "hard.ece.parent",
                                    "plus": 0.01}}},
    "confirm": {"long": {"candidate_reads": "runs/x-{tag}", "panels": {}, "criteria": {}}},
    "budget": {"hard_cap": 50, "metered_start": 7.25},
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "later", "state"),
    [("running", 60, ReadState.IN_FLIGHT), ("running", 6000, ReadState.OVERDUE), ("failed", 60, ReadState.FAILED)],
)
def test_a_read_that_has_a_record_of_its_own_is_known_before_it_lands(
    checkout: Any, watching: Any, clock: Any, status: str, later: float, state: ReadState
) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    directory = next(cell.directory for cell in watching("r9").observe().reads.cells if cell.state is ReadState.ABSENT)
    checkout.write(f"{directory}.read.json", {
        "name": directory.removeprefix("runs/"), "kind": "benchmark", "run": "/runs/r9-a/00-trial-0/checkpoint",
        "suites": ["evals/hard"], "gpu": "H200", "timeout": 600, "bound_usd": 1, "at": clock.now().timestamp(),
        "call": "fc-1", "status": status,
    })  # fmt: skip
    clock.pass_(later)
    [cell] = [cell for cell in watching("r9").observe().reads.cells if cell.directory == directory]
    assert cell.state is state


def test_the_matrix_shows_what_landed_is_out_failed_or_was_never_launched(
    checkout: Any, watching: Any, clock: Any
) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    checkout.write("runs/r9-4b-a-hard/rows.json", [])
    jobs = "/r9-a/00-trial-0/checkpoint@evals/documents@r9-4b-a-docs,o/m@sha@evals/w@r9-4b-a-wide"
    checkout.write("runs/r9-reads-4b-a.json", {"launched_at": clock.now().timestamp() - 60,
                                               "commands": [["modal", "run", "--jobs", jobs]]})  # fmt: skip
    checkout.write("runs/r9-reads-4b-a-0.log", b"r9-4b-a-wide: FAILED RemoteError: gateway [503]\n")
    observer = watching("r9")
    snapshot = observer.observe()

    def states() -> dict[str, ReadState]:
        return {tag: snapshot.reads.cell("4b-a", tag).state for tag in ("hard", "docs", "wide")}

    assert states() == {"hard": ReadState.LANDED, "docs": ReadState.IN_FLIGHT, "wide": ReadState.FAILED}
    assert snapshot.reads.cell("4b-b", "hard").state is ReadState.ABSENT
    assert snapshot.reads.cell("4b", "docs") is None, "the parent has no such read"
    assert snapshot.money.committed is not None and snapshot.money.committed > 0, "a read in flight may cost"
    for _ in range(600):
        clock.pass_(20)
        snapshot = observer.observe()
        if snapshot.reads.cell("4b-a", "docs").state is ReadState.OVERDUE:
            break
    assert states()["docs"] is ReadState.OVERDUE


def test_a_read_out_stands_beside_what_was_registered(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    metric = {"candidate": 0.8, "parent": 0.7, "delta": 0.1, "ci95": [0.05, 0.15]}
    checkout.write("runs/r9-readout/round9.json", {"round": 9, "registered": "x", "drop_ids": [], "arms": {"4b-a": {
        "trial": "runs/r9-a/00-trial-0", "parent": "runs/p/00-trial-0", "temperature": 1.5, "panels": {"hard": {
            "n": 9, "acc": metric}}, "criteria": {"1_gain": True, "3_ece": None}, "missing": [], "complete": True,
        "passed": False}}, "ranking": {"4b": []}, "candidates": {"4b": None}})  # fmt: skip
    snapshot = watching("r9").observe()
    assert snapshot.readout is not None
    first, second = snapshot.readout.arms
    gain, ece = first.criteria
    assert (gain.kind, gain.verdict, gain.value, gain.threshold) == ("primary", Verdict.PASS, 0.05, 0)
    assert (ece.kind, ece.verdict, ece.value, ece.right) == (
        "calibration",
        Verdict.MISSING,
        None,
        "hard.ece.parent + 0.01",
    )
    assert (second.name, second.note, second.passed) == ("4b-b", "not read yet", None)
    assert [criterion.verdict for criterion in second.criteria] == [Verdict.MISSING, Verdict.MISSING]
    assert snapshot.readout.candidates == (("4b", None),)
    assert snapshot.studies[0].state is TrialState.DONE


def test_a_spec_without_a_state_file_gives_its_own_budget(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    money = watching("r9").observe().money
    assert (money.authorization, money.baseline, money.spent, money.headroom) == (50, Decimal("7.25"), None, None)
    assert money.source == "budget block of r9.json"


# ------------------------------------------------------------------------------------------------------ passes


def test_a_pass_over_files_that_did_not_move_changes_nothing(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a", labels=3)
    checkout.watch("r9-a", {}, {}, {})
    checkout.log("r9-a", step(10))
    observer = watching()
    first = observer.observe()
    second = observer.observe()
    assert first.changed == {section.value for section in Section}
    assert second.changed == frozenset()
    assert second.studies is first.studies and second.findings is first.findings


def test_only_what_moved_is_made_anew(checkout: Any, watching: Any, clock: Any) -> None:
    for name in ("r9-a", "r9-b"):
        checkout.spawn(name, labels=2)
        checkout.watch(name, {}, {})
        checkout.log(name, step(10))
    observer = watching()
    first = observer.observe()
    clock.pass_(1)
    checkout.log("r9-b", step(20))
    second = observer.observe()
    assert second.changed == {"studies"}
    assert second.studies[0] is first.studies[0]
    assert second.studies[1].trials[1] is first.studies[1].trials[1]
    assert second.studies[1].trials[0].step == 20


def test_studies_and_files_that_appear_later_are_seen(checkout: Any, watching: Any) -> None:
    observer = watching()
    assert observer.observe().studies == ()
    checkout.spawn("r9-a")
    assert [study.name for study in observer.observe().studies] == ["r9-a"]
    checkout.log("r9-a", step(10))
    assert observer.observe().trials[0].step == 10
    (checkout.runs / "r9-a.spawn.json").unlink()
    assert observer.observe().trials[0].call is None


def test_a_state_that_changes_while_we_watch_is_an_event(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching()
    observer.observe()
    checkout.watch("r9-a", {"status": "done"})
    assert [(event.subject, event.text) for event in observer.observe().events] == [
        ("r9-a/trial-0", "running → done")]  # fmt: skip


def test_a_journal_is_read_by_its_newlines_alone_and_its_times_as_moments(checkout: Any, watching: Any) -> None:
    rows = [
        {"round": 7, "spec": "s", "spend_before": 0, "budgets": 1, "candidates": {}, "at": "2027-03-28T00:10Z"},
        {"round": 8, "spec": "s\u2028t\x85", "spend_before": 0, "budgets": 1, "at": "2027-03-28T01:20+01:00"},
        {"round": 9, "spec": "s", "spend_before": 0, "budgets": 1, "candidates": {"4b": "4b-a"},
         "at": "2027-03-28 00:30"},
    ]  # fmt: skip
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n\n{torn\n"
    checkout.write("runs/autoresearch-sessions.jsonl", text.encode())
    snapshot = watching().observe()
    told = {event.subject: event for event in snapshot.events}
    assert list(told) == ["r9", "r7", "r8"], "a time without a zone is no moment, so it is not put in order"
    assert told["r9"].at is None and "has no time zone" in told["r9"].text and "4b: 4b-a" in told["r9"].text
    assert told["r7"].at < told["r8"].at
    assert snapshot.findings[0].reason.startswith("line 5: ")


def test_waiting_ends_in_real_time_under_any_clock(checkout: Any, watching: Any) -> None:
    observer = watching()
    observer.observe()
    assert observer.wait(0.05) is False
