"""modal_app.py by the stock command line of Modal, against the emulator: deploy, study, pull, reads, continuations."""

import hashlib
import json
import secrets
import signal
from typing import Any

import pytest

from kev.baseline import read_records
from kev.budget import GPU_HOURLY, hourly_rate
from kev.clock import SystemClock
from kev.compute.protocol import CallRef, CallState, Phase
from kev.emulator.plan import Fault
from kev.emulator.prices import hourly
from kev.entrypoints.admission import Admission, Request, admit
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.entrypoints.place import Place
from kev.entrypoints.study import start_trials, study_orders
from kev.records.base import read_record
from kev.records.lease import Lease
from kev.records.plan import TrialConfig
from kev.records.report import Report
from kev.records.result import Result
from kev.records.spawn import SpawnRecord
from kev.records.step_metrics import read_step_metrics
from kev.rounds.trial_orders import Provenance
from kev.suite import open_suite
from kev.worker.sources import digest, source_hashes
from kev.worker.training import TrainingRun, find_trainer

from .conftest import APP, DEADLINE_S, Night

LORA: dict[str, Any] = {"base": "synthetic/linear", "base_revision": "0" * 40, "lr": 1e-3, "batch": 1, "accum": 2}
FULL = {**LORA, "full_ft": 1, "weights_dtype": "bf16", "save_every_steps": 5, "epochs": 3}
SUITES = ("--suite", "evals/small-v1", "--transfer", "evals/small-transfer-v1")


def write_plan(night: Night, *configs: dict[str, Any], name: str) -> str:
    (night.root / name).write_text(json.dumps(configs))
    return name


def study(night: Night, name: str, plan: str, *more: str, code: int = 0) -> tuple[str, str]:
    return night.run("study", *SUITES, "--plan", plan, "--name", name, "--gpu", "H200", *more, code=code)


def wait_for_calls(night: Night, study: str) -> dict[str, CallState]:
    record = night.spawn_record(study)

    async def settle(compute: Any) -> dict[str, CallState]:
        return {label: await end_of(compute, CallRef(call)) for label, call in record["calls"].items()}

    return night.ask(settle)


async def end_of(compute: Any, call: CallRef) -> CallState:
    """The state in which a call ended."""
    state: CallState = await compute.poll(call, wait_s=DEADLINE_S)
    assert state.phase.is_terminal, f"{call.id} did not end"
    return state


def accepted_calls(night: Night) -> set[str]:
    """Every call of a LoRA trial that the platform has ever accepted."""
    store = night.emulator.plane.store
    return {call.id for call in list(store.calls.values()) if store.function(call.function_id).name == "run_trial"}


def test_a_study_is_launched_watched_pulled_and_read(night: Night) -> None:
    plan = write_plan(night, LORA, {**LORA, "seed": 2}, name="lora.json")
    out, _ = study(night, "pair", plan, "--budget", "20", "--timeout", "1800")
    record = read_record(night.root / "runs/pair.spawn.json", SpawnRecord)
    assert [f"pair/{label}: {call}" in out for label, call in record.calls.items()] == [True, True]
    assert (record.modal_retries, record.gpu, str(record.bound_usd)) == (0, "H200", "6.27")
    states = wait_for_calls(night, "pair")
    assert [state.phase for state in states.values()] == [Phase.SUCCEEDED] * 2

    logs, _ = night.modal("app", "logs", APP)
    assert "ep0 step 10/20 loss " in logs and "evaluated 12/12" in logs

    out, _ = night.run("pull", "--name", "pair")
    trial = night.root / "runs/pair/00-trial-0"
    result = read_record(trial / "result.json", Result)
    assert result.to_json()["synthetic"] is True and result.transfer is not None
    assert len(read_step_metrics((trial / "metrics.jsonl").read_bytes()).points) == 20
    sums = json.loads((trial / "manifest.json").read_text())["files"]
    for name, entry in sums.items():
        assert hashlib.sha256((trial / name).read_bytes()).hexdigest() == entry["sha256"], name
    assert f"{2 * len(sums)} verified" in out
    ranked = [json.loads(line) for line in (night.root / "runs/pair/results.jsonl").read_text().splitlines()]
    assert {each["id"] for each in ranked} == {"00-trial-0", "01-trial-1"}
    lease = Lease.model_validate_json(night.volume_file("pair/00-trial-0/attempt.json", "kev-leases") or b"")
    assert lease.ended is not None and lease.nonce == record.attempts["trial-0"][0].nonce

    run = "/runs/pair/00-trial-0/checkpoint"
    jobs = f"{run}@evals/small-transfer-v1@pair-held,/runs/absent@evals/small-v1@pair-absent@--split calibration"
    out, _ = night.run("benchmarks", "--jobs", jobs, "--gpu", "H100", code=1)
    report = read_record(night.root / "runs/pair-held/report.json", Report)
    assert report.clean == result.transfer.clean
    assert f"pair-held: acc {report.clean['acc']:.4f} brier {report.clean['brier']:.4f}" in out
    assert "pair-absent: FAILED NotFound: " in out
    calls = [
        json.loads((night.root / f"runs/{name}.read.json").read_text())["call"] for name in ("pair-held", "pair-absent")
    ]
    assert all(call.startswith("fc-") for call in calls)

    locked = ("--trial", "pair/00-trial-0", "--decision", "evals/small-v1", "--transfer", "evals/small-transfer-v1")
    _, err = night.run("locked_test", *locked, "--name", "pair-ungated", code=1)
    assert "a test is read at a registered stage alone" in err
    locked += ("--owner-allows", "pair-ungated")
    out, _ = night.run("locked_test", *locked, "--name", "pair-ungated")
    assert "pair-ungated decision: acc " in out and "pair-ungated transfer: acc " in out
    _, err = night.run("locked_test", *locked, "--name", "pair-ungated", code=1)
    assert "a locked test is read once" in err


@pytest.mark.parametrize(
    ("function", "cores", "memory", "disk", "timeout"),
    [
        ("run_trial", 4, (65_536, 196_608), 0, 28_800),
        ("run_full_trial", 24, (368_640, 409_600), 1_048_576, 86_400),
        ("run_sharded_trial", 16, (409_600, 471_040), 1_048_576, 86_400),
        ("run_bench", 2, (32_768, 131_072), 0, 3600),
        ("run_locked_test", 2, (32_768, 49_152), 0, 3600),
        ("run_resume", 2, (32_768, 49_152), 0, 7200),
        ("remote_source_hashes", 1, (1024, 0), 0, 120),
    ],
)
def test_a_function_is_deployed_with_what_its_bound_is_made_of_and_without_retries(
    night: Night, function: str, cores: int, memory: tuple[int, int], disk: int, timeout: int
) -> None:
    store = night.emulator.plane.store
    found = next(each.definition for each in store.functions.values() if each.name == function and not each.base)
    asked = found.resources
    assert (asked.milli_cpu, (asked.memory_mb, asked.memory_mb_max)) == (cores * 1000, memory)
    assert (asked.ephemeral_disk_mb, found.timeout_secs, found.retry_policy.retries) == (disk, timeout, 0)
    if function.endswith("trial"):
        most = hourly_rate("H100:8" if function == "run_sharded_trial" else "H100", function != "run_trial")
        cards = GPU_HOURLY["H100"] * (7 if function == "run_sharded_trial" else 0)
        assert sum(hourly(found).values()) + cards == most


def test_a_refusal_is_one_line_on_stderr_and_exit_code_1(night: Night) -> None:
    plan = write_plan(night, LORA, name="one.json")
    _, err = study(night, "cheap", plan, "--budget", "3", code=1)
    assert err == "study cheap: bound $3.1326 is above its budget $3.0\n"
    assert not (night.root / "runs/cheap.spawn.json").exists()


def place_of(night: Night, compute: Any) -> Place:
    return Place(night.root, compute, compute, APP, say=lambda _: None)


def brief_admission(night: Night, name: str, plan: str, timeout: int) -> Admission:
    """What the command line would admit, but with less time than it admits: nobody waits a minute for a timeout."""
    found = admit(Request("evals/small-v1", plan, name, "H200", "evals/small-transfer-v1", budget=30.0), night.root)
    return Admission(found.name, found.gpu, timeout, found.bound, True, found.suite, found.transfer, found.configs)


def launch_briefly(night: Night, study: str, pace_ms: int, timeout: int) -> Admission:
    """A full-weight trial of 60 steps, started with any timeout."""
    plan = write_plan(night, {**FULL, "base": f"synthetic/linear-{pace_ms}ms"}, name=f"{study}.json")
    admission = brief_admission(night, study, plan, timeout)

    async def launch(compute: Any) -> None:
        place = place_of(night, compute)
        gate = open_gate(place)
        await start_trials(place, gate, admission.name, study_orders(admission, provenance_of(place, gate)))

    night.ask(launch)
    return admission


def train_here(night: Night) -> bytes:
    """The checkpoint of the same training in this process, never interrupted."""
    suite = open_suite(night.root / "evals/small-v1")
    directory = night.root / "undisturbed"
    find_trainer(FULL["base"]).train(
        TrainingRun(
            config=TrialConfig.model_validate(FULL), suite=suite, records=read_records(suite, "train"),
            directory=directory, shown="here", attempt=1, clock=SystemClock(), say=lambda _: None, check=lambda: None,
        )
    )  # fmt: skip
    return (directory / "checkpoint/synthetic.json").read_bytes()


def test_nobody_disturbs_a_trial_that_is_held_and_a_cancelled_one_is_not_continued(night: Night) -> None:
    admission = launch_briefly(night, "held", pace_ms=5000, timeout=600)
    night.until(lambda: night.volume_file("held/00-trial-0/attempt.json", "kev-leases"))
    [(_, order)] = study_orders(admission, Provenance(digest(source_hashes(night.root))))
    payload = order.payload | {"nonce": secrets.token_hex(16), "attempt": 2}

    async def intrude(compute: Any) -> CallState:
        ref = await compute.spawn("run_full_trial", payload, run_id="held/intruder", timeout_s=60)
        return await end_of(compute, ref)

    intruded = night.ask(intrude)
    assert intruded.phase is Phase.SUCCEEDED and "held by attempt 1" in intruded.result["refused"]
    call = CallRef(night.spawn_record("held")["calls"]["trial-0"])
    settled = night.ask(lambda compute: compute.settle(call, soft_s=20, hard_s=20))
    assert settled.phase is Phase.CANCELLED
    _, err = night.run("resume", "--study", "held", *SUITES, "--trial", "trial-0", code=1)
    assert "was cancelled, which is a decision and no timeout" in err and err.count("\n") == 1
    assert night.spawn_record("held")["calls"]["trial-0"] == call.id


def test_a_timed_out_trial_goes_on_from_its_last_resume_point_to_the_bits_of_an_undisturbed_one(night: Night) -> None:
    launch_briefly(night, "long", pace_ms=150, timeout=8)
    assert wait_for_calls(night, "long")["trial-0"].phase is Phase.TIMED_OUT

    night.run("resume", "--study", "long", *SUITES, "--trial", "trial-0")
    record = read_record(night.root / "runs/long.spawn.json", SpawnRecord)
    assert [attempt.call is not None for attempt in record.attempts["trial-0"]] == [True, True]
    state = wait_for_calls(night, "long")["trial-0"]
    while state.phase is Phase.TIMED_OUT:
        night.run("resume", "--study", "long", *SUITES, "--trial", "trial-0")
        state = wait_for_calls(night, "long")["trial-0"]
    assert state.phase is Phase.SUCCEEDED and "objective" in state.result, state

    night.run("pull", "--name", "long")
    trial = night.root / "runs/long/00-trial-0"
    points = read_step_metrics((trial / "metrics.jsonl").read_bytes()).points
    assert {point.step for point in points} == set(range(1, 61)) and {point.attempt for point in points} >= {1, 2}
    assert "resumed from /runs/long/00-trial-0/checkpoint/resume/step-00000" in (trial / "train.log").read_text()
    undisturbed = train_here(night)
    assert (trial / "checkpoint/synthetic.json").read_bytes() == undisturbed


def test_a_launcher_killed_in_the_middle_leaves_a_record_that_is_completed_and_loses_no_call(night: Night) -> None:
    plan = write_plan(night, *({**LORA, "seed": seed} for seed in range(5)), name="five.json")
    before = accepted_calls(night)
    night.emulator.add(Fault(rpc=("spawn",), kind="slow", delay_s=0.4, times=4))
    client = night.start("run", "modal_app.py::study", *SUITES, "--plan", plan, "--name", "cut", "--gpu", "H200")
    path = night.root / "runs/cut.spawn.json"
    night.until(lambda: path.exists() and len(night.spawn_record("cut")["calls"]) >= 1)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    night.emulator.clear()
    left = night.spawn_record("cut")
    assert 1 <= len(left["calls"]) < 5

    study(night, "cut", plan)
    record = night.spawn_record("cut")
    assert set(record["calls"]) == {f"trial-{index}" for index in range(5)}
    for label in left["calls"]:
        assert [each["nonce"] for each in record["attempts"][label]] == [
            each["nonce"] for each in left["attempts"][label]
        ]
    known = {call for call in record["calls"].values() if call}
    pending = [label for label, call in record["calls"].items() if call is None]
    assert len(pending) <= 1 and known <= accepted_calls(night) - before
    assert len(accepted_calls(night) - before - known) <= len(pending)


def test_a_call_whose_answer_was_lost_is_adopted_and_not_started_twice(night: Night) -> None:
    plan = write_plan(night, {**LORA, "base": "synthetic/linear-20ms"}, name="lost.json")
    # What is deployed was asked before; the answers to all tries of the first spawn are lost.
    study(night, "asked", plan)
    wait_for_calls(night, "asked")
    before = accepted_calls(night)
    night.emulator.add(Fault(rpc=("spawn",), kind="lost-reply", times=8))
    out, err = study(night, "lost", plan, code=1)
    night.emulator.clear()
    assert "whether it started is not known" in out and err.count("\n") == 1
    assert night.spawn_record("lost")["calls"] == {"trial-0": None}
    night.until(lambda: night.volume_file("lost/00-trial-0/attempt.json", "kev-leases"))
    out, _ = night.run("resume", "--study", "lost", *SUITES)
    call = night.spawn_record("lost")["calls"]["trial-0"]
    assert accepted_calls(night) - before == {call} and f"adopted {call}" in out
    assert wait_for_calls(night, "lost")["trial-0"].phase is Phase.SUCCEEDED


def test_an_app_that_was_deployed_from_other_sources_is_refused(night: Night) -> None:
    plan = write_plan(night, LORA, name="one.json")
    path = night.root / "kev" / "spelling.py"
    text = path.read_text()
    try:
        path.write_text(text + "\n# changed since the deployment\n")
        _, err = study(night, "other", plan, code=1)
    finally:
        path.write_text(text)
    assert "was deployed from other sources: kev/spelling.py" in err and err.count("\n") == 1
