"""Going on with a study: the order of the checks, what counts as an attempt, and who is never disturbed."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from kev.compute.protocol import CallState, Phase
from kev.entrypoints.continuation import Waits
from kev.entrypoints.resume import ResumeRequest, remains_of, resume_study
from kev.errors import LockHeld, NotFound, Refused
from kev.files import locked
from kev.records.base import read_record
from kev.records.spawn import SpawnRecord
from kev.suite import open_suite

from .conftest import FULL, LORA, NOW, Desk

REQUEST = ResumeRequest("night", "evals/small-v1", "evals/small-transfer-v1", "H100", 7200, trial="trial-0")
TRIAL = "night/00-trial-0"
QUICK = Waits(look=0.001, stale=30.0, most=60.0)


def launched(desk: Desk, config: dict[str, Any] = FULL, *, used: int = 1, **changes: Any) -> None:
    """A study of one trial from before there was a ledger: all its attempts were started, and it left provenance."""
    entries = [{"nonce": f"{n:032x}", "call": f"fc-old{n}", "at": NOW.timestamp() - 5000} for n in range(1, used + 1)]
    record = {
        "name": "night", "calls": {"trial-0": f"fc-old{used}"}, "attempts": {"trial-0": entries},
        "bound_usd": 27.85, "gpu": "H200", "timeout": 3600, "full_ft": config.get("full_ft") == 1, "modal_retries": 0,
    }  # fmt: skip
    (desk.root / "runs").mkdir(exist_ok=True)
    (desk.root / "runs/ledger.jsonl").unlink(missing_ok=True)
    (desk.root / "runs/night.spawn.json").write_text(json.dumps(record | changes))
    suite = open_suite(desk.root / "evals/small-v1")
    provenance = {"config": config, "suite_sha256": suite.sha256, "source_hashes": desk.compute.hashes}
    desk.put(f"{TRIAL}/provenance.json", provenance)
    desk.compute.states[f"fc-old{used}"] = CallState(Phase.TIMED_OUT, NOW)
    lease(desk, f"{used:032x}", ended=NOW.timestamp())
    desk.claims.keys |= {f"{TRIAL}/{n}{end}" for n in range(1, used + 1) for end in ("", "/ended")}


def lease(desk: Desk, nonce: str, *, ended: float | None = None, call: str = "fc-old1") -> None:
    at = NOW.timestamp() - 60
    value = {
        "nonce": nonce,
        "attempt": 1,
        "call_id": call,
        "started": at,
        "heartbeat": at,
        "ended": ended,
        "previous": None,
    }
    desk.put(f"{TRIAL}/attempt.json", value, volume="kev-leases")


async def resume(desk: Desk, **changes: Any) -> int:
    return await resume_study(desk.place, replace(REQUEST, **changes), QUICK)


async def refused(desk: Desk, words: str, **changes: Any) -> None:
    """The trial is refused with `words`, and nothing is spawned."""
    spawned = len(desk.compute.spawned)
    with pytest.raises(Refused, match=re.escape(words)):
        await resume(desk, **changes)
    assert len(desk.compute.spawned) == spawned


def record_of(desk: Desk) -> SpawnRecord:
    return read_record(desk.root / "runs/night.spawn.json", SpawnRecord)


async def test_a_timed_out_trial_goes_on_under_its_ledger_and_what_it_was_admitted_for(desk: Desk) -> None:
    launched(desk)
    assert await resume(desk) == 0
    (function, order, gpu, timeout), record = desk.compute.spawned[0], record_of(desk)
    assert (function, gpu, timeout) == ("run_full_trial", "H200", 3600)
    assert record.calls == {"trial-0": "fc-1"} and record.attempts_used("trial-0") == 2
    second = record.attempts["trial-0"][1]
    assert (order["nonce"], order["attempt"], order["config"], second.call) == (second.nonce, 2, FULL, "fc-1")
    assert order.get("evidence") is None


async def test_the_last_attempt_is_the_third(desk: Desk) -> None:
    launched(desk, used=2)
    assert await resume(desk) == 0
    desk.lines.clear()
    desk.compute.spawned.clear()
    launched(desk, used=3)
    await refused(desk, "3 of 3 attempts are used")
    assert await resume(desk, beyond_bound=True) == 0


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (CallState(Phase.ACTIVE, NOW), "still running"),
        (CallState(Phase.FAILED, NOW, error="ArithmeticError"), "failed (ArithmeticError)"),
        (CallState(Phase.CANCELLED, NOW), "was cancelled"),
        (CallState(Phase.SUCCEEDED, NOW, result={"label": "trial-0"}), "ended by itself"),
        (CallState(Phase.MISSING, NOW), "not known"),
        (CallState(Phase.EXPIRED, NOW), "nobody knows how"),
    ],
)
async def test_a_call_that_did_not_time_out_is_not_continued(desk: Desk, state: CallState, words: str) -> None:
    launched(desk)
    desk.compute.states["fc-old1"] = state
    await refused(desk, words)
    assert record_of(desk).attempts_used("trial-0") == 1


async def test_an_attempt_that_was_refused_its_lease_is_followed_by_another(desk: Desk) -> None:
    launched(desk)
    desk.compute.states["fc-old1"] = CallState(Phase.SUCCEEDED, NOW, result={"label": "trial-0", "refused": "held"})
    assert await resume(desk) == 0


async def test_a_silent_lease_is_waited_out_and_the_evidence_travels_with_the_order(desk: Desk) -> None:
    launched(desk)
    lease(desk, f"{1:032x}")
    desk.claims.keys = {f"{TRIAL}/1"}
    assert await resume(desk) == 0
    assert desk.clock.seconds >= QUICK.stale
    evidence = desk.compute.spawned[0][1]["evidence"]
    assert evidence == {"claims": 1, "nonce": f"{1:032x}", "heartbeat": NOW.timestamp() - 60}


async def test_a_lease_whose_heartbeat_goes_on_is_never_taken(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    launched(desk)
    desk.claims.keys = {f"{TRIAL}/1"}
    read = desk.compute.read

    async def beating(volume: str, path: str, *, limit: int) -> bytes | None:
        data = await read(volume, path, limit=limit)
        if volume != "kev-leases" or data is None:
            return data
        value = json.loads(data) | {"ended": None, "heartbeat": NOW.timestamp() + desk.clock.seconds}
        return json.dumps(value).encode()

    desk.compute.read = beating  # type: ignore[method-assign]
    await refused(desk, "held; waits until")
    assert record_of(desk).attempts_used("trial-0") == 1


async def test_a_pending_attempt_is_adopted_by_the_nonce_in_its_lease(desk: Desk) -> None:
    launched(desk)
    nonce = "f" * 32
    entry = {"nonce": nonce, "call": None, "at": NOW.timestamp() - 5}
    launched(desk, calls={"trial-0": None}, attempts={"trial-0": [entry]})
    lease(desk, nonce, call="fc-lost")
    assert await resume(desk) == 0
    record = record_of(desk)
    assert record.calls == {"trial-0": "fc-lost"} and record.attempts["trial-0"][0].call == "fc-lost"
    assert desk.compute.spawned == []


async def test_a_young_pending_attempt_is_waited_for_and_an_old_one_is_abandoned_and_counts(desk: Desk) -> None:
    old = {"nonce": "e" * 32, "call": None, "at": NOW.timestamp() - 31}
    young = {**old, "at": NOW.timestamp() - 29}
    launched(desk, calls={"trial-0": None}, attempts={"trial-0": [young]})
    await refused(desk, "may still take the lease")
    desk.lines.clear()
    launched(desk, calls={"trial-0": None}, attempts={"trial-0": [old]})
    assert await resume(desk) == 0
    record = record_of(desk)
    assert record.attempts["trial-0"][0].abandoned == NOW.timestamp()
    assert record.attempts_used("trial-0") == 2 and record.calls == {"trial-0": "fc-1"}


async def test_a_record_without_a_ledger_needs_the_word_for_going_beyond_its_bound(desk: Desk) -> None:
    launched(desk, modal_retries=None, attempts_=None)
    await refused(desk, "--beyond-bound")
    assert await resume(desk, beyond_bound=True) == 0


async def test_a_trial_that_is_over_is_left_alone(desk: Desk) -> None:
    launched(desk)
    for name in ("result.json", "failed.json"):
        desk.put(f"{TRIAL}/{name}", {})
        assert await resume(desk) == 0
        del desk.compute.files[f"kev-runs:{TRIAL}/{name}"]
    assert desk.compute.spawned == []


async def test_a_lora_trial_is_scored_again_where_it_was_trained_and_never_continued(desk: Desk) -> None:
    launched(desk, LORA)
    await refused(desk, "not continued")
    desk.put(f"{TRIAL}/checkpoint/training_metrics.json", {})
    desk.compute.states["fc-1"] = CallState(Phase.ACTIVE, NOW)
    assert await resume(desk) == 0
    assert [(name, order["directory"], gpu, timeout) for name, order, gpu, timeout in desk.compute.spawned] == [
        ("run_resume", "00-trial-0", "H100", 7200)
    ]
    scoring = desk.units()[f"rescore/{TRIAL}/0"]
    assert scoring.live is not None and scoring.live.call == "fc-1" and scoring.order.attempt_usd > 11
    await refused(desk, "call fc-1 is still running")
    del desk.compute.states["fc-1"]
    assert await resume(desk) == 0
    assert desk.units()[f"rescore/{TRIAL}/0"].outcome == "done"


async def test_other_suites_and_other_sources_than_the_trial_began_with_are_refused(desk: Desk) -> None:
    launched(desk)
    desk.put(f"{TRIAL}/provenance.json", {"config": FULL, "suite_sha256": "0" * 64, "source_hashes": {}})
    await refused(desk, "another suite")
    launched(desk)
    suite = open_suite(desk.root / "evals/small-v1")
    began = {**desk.compute.hashes, "kev/__init__.py": "0" * 64}
    desk.put(f"{TRIAL}/provenance.json", {"config": FULL, "suite_sha256": suite.sha256, "source_hashes": began})
    await refused(desk, "other sources, and goes on only with them: kev/__init__.py")


async def test_a_refusal_of_one_trial_is_an_error_only_where_it_was_named(desk: Desk) -> None:
    launched(desk, used=3)
    assert await resume(desk, trial="") == 0
    assert any(line.startswith("!!! ") for line in desk.lines)


async def test_a_trial_that_is_not_there_is_named_with_those_that_are(desk: Desk) -> None:
    launched(desk)
    with pytest.raises(NotFound, match="there are: trial-0"):
        await resume(desk, trial="trial-7")
    with pytest.raises(NotFound):
        await resume(desk, study="other")


async def test_two_continuations_of_a_study_never_run_at_once(desk: Desk) -> None:
    launched(desk)
    with locked(desk.root / "runs/.continue-night.lock"), pytest.raises(LockHeld):
        await resume(desk)


def test_only_trial_directories_are_trials() -> None:
    trained = "s/10-trial-10/checkpoint/training_metrics.json"
    paths = ["s/00-trial-0", "s/00-trial-0/result.json", "s/results.jsonl", trained, "s/notes/x"]
    found = {each.trial.label: each for each in remains_of("s", paths)}
    assert set(found) == {"trial-0", "trial-10"}
    assert found["trial-0"].is_final and found["trial-10"].is_trained and not found["trial-10"].is_final


async def test_what_was_launched_before_there_was_a_ledger_is_counted_in_it_from_then_on(desk: Desk) -> None:
    launched(desk, used=2)
    assert await resume(desk) == 0
    unit = desk.units()["trial/night/trial-0"]
    assert [attempt.call for attempt in unit.attempts] == ["fc-old1", "fc-old2", "fc-1"]
    assert unit.order.attempts == 3 and Decimal("27.85") <= unit.order.attempt_usd * 3 < Decimal("27.86")
