"""Remote reads over real sockets: what is retried, what is counted, what ends a read, and what it may cost."""

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from endpoints import Misbehaviour, misbehaving, served
from hypothesis import given
from hypothesis import strategies as st
from linear_scorer import EVALS, LinearScorer, trained_scorer

from kev.benchmark import main
from kev.clock import SystemClock
from kev.errors import UsageError
from kev.linear import fit
from kev.predictors.distribution import BadDistribution, answer_of, tolerance
from kev.predictors.local import LocalPredictor
from kev.predictors.pace import Pace
from kev.predictors.purse import RESERVED_TOKENS, CapReached, Purse, Tariff
from kev.predictors.remote import Endpoint, EndpointFailed, RemotePredictor
from kev.predictors.retries import RetryPolicy, parse_retry_after
from kev.reads.attempt import read
from kev.reads.records import Selection, select_partition
from kev.suite import open_suite

FAST = RetryPolicy(first=0.001, longest=0.01, total=60.0)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def scorer() -> LinearScorer:
    return trained_scorer()


@pytest.fixture(scope="module")
def chosen() -> Selection:
    return select_partition(open_suite(EVALS / "heldout-stock-v1"), "development").sample(30)


def remote_read(
    address: str, chosen: Selection, out: Path, *, concurrency: int = 1, tariff: Tariff | None = None,
    policy: RetryPolicy = FAST, token: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    purse = Purse(out / "usage.json", "kev-latest", tariff or Tariff(), SystemClock())
    predictor = RemotePredictor(Endpoint(address, "kev-latest", token, concurrency), purse, policy)
    try:
        return read(predictor, chosen, out, lambda _: None, purse=purse)
    finally:
        predictor.close()


def test_our_own_server_gives_the_answers_of_the_model_rounded_to_four_decimals(
    tmp_path: Path, scorer: LinearScorer
) -> None:
    chosen = select_partition(open_suite(EVALS / "transfer-v1"), "development").sample(60)
    with served(scorer) as address:
        report = remote_read(address, chosen, tmp_path / "remote", concurrency=4)
    read(LocalPredictor(scorer), chosen, tmp_path / "local", lambda _: None)
    ours, theirs = load(tmp_path / "remote" / "rows.json"), load(tmp_path / "local" / "rows.json")
    assert [row["id"] for row in ours] == [row["id"] for row in theirs], "the order does not depend on threads"
    for remote, local in zip(ours, theirs, strict=True):
        assert remote["p"] == pytest.approx(local["p"], abs=1.5e-4)
        assert "logits" not in remote and "inference_temperature" not in remote
    assert report["remote"]["served_run"] == "linear"
    assert report["remote"]["served_temperature"] == 1.0
    usage = load(tmp_path / "remote" / "usage.json")
    assert usage["calls"] == len(chosen.records) and usage["input_tokens"] > 0 and usage["estimated_usd"] == 0


def test_labels_and_sources_never_leave_this_machine(tmp_path: Path, scorer: LinearScorer, chosen: Selection) -> None:
    with misbehaving(scorer) as (endpoint, address):
        remote_read(address, chosen, tmp_path / "out")
    sent = [call["body"] for call in endpoint.calls]
    assert all(body.keys() == {"state", "questions", "model"} for body in sent)
    questions = [question for body in sent for question in body["questions"].values()]
    assert all(question.keys() == {"type", "instructions", "criteria"} for question in questions)


@pytest.mark.parametrize("status", [429, 503, 529, 502, 504])
def test_a_busy_endpoint_is_asked_again_and_every_record_is_read(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection, status: int
) -> None:
    def every_third(number: int) -> tuple[int, dict[str, str], Any] | None:
        return (status, {"retry-after": "0"}, {"detail": "later"}) if number % 3 == 0 else None

    with misbehaving(scorer, every_third) as (endpoint, address):
        report = remote_read(address, chosen, tmp_path / "out")
    counts = Counter(endpoint.statuses)
    assert report["coverage"]["rejected_records"] == 0
    assert counts[200] == len(chosen.records)
    assert load(tmp_path / "out" / "usage.json")["retries_after_5xx"] == counts[status] > 0


def test_a_connection_that_breaks_is_tried_again_and_counts_as_paid(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection
) -> None:
    with misbehaving(scorer, lambda number: (0, {}, {}) if number == 2 else None) as (endpoint, address):
        report = remote_read(address, chosen, tmp_path / "out", tariff=Tariff(Decimal(1)))
    usage = load(tmp_path / "out" / "usage.json")
    assert report["coverage"]["evaluated_records"] == len(chosen.records)
    lost = len(json.dumps(endpoint.calls[1]["body"], ensure_ascii=False).encode())
    assert usage["lost_input_tokens"] == lost, "its answer is lost, and may have been paid for: a token a byte"
    assert usage["estimated_usd"] == pytest.approx((1000 * len(chosen.records) + lost) / 1e6)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_an_endpoint_refuses_is_counted_and_never_asked_twice(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection, status: int
) -> None:
    with misbehaving(scorer, lambda n: (status, {}, {"detail": "too long"}) if n in (2, 5) else None) as (
        endpoint, address,
    ):  # fmt: skip
        report = remote_read(address, chosen, tmp_path / "out")
    assert len(endpoint.calls) == len(chosen.records)
    assert report["coverage"]["rejected_records"] == 2
    assert report["coverage"]["evaluated_records"] == len(chosen.records) - 2
    assert [each["error"] for each in load(tmp_path / "out" / "rejected.json")] == [f"HTTP {status}: too long"] * 2
    assert load(tmp_path / "out" / "usage.json")["refusals"] == {str(status): 2}


@pytest.mark.parametrize("status", [401, 403, 404, 409, 418, 500])
def test_any_other_error_ends_the_read_at_once_and_the_next_attempt_goes_on(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection, status: int
) -> None:
    with misbehaving(scorer, lambda n: (status, {}, {"detail": "no"}) if n == 4 else None) as (endpoint, address):
        with pytest.raises(EndpointFailed, match=f"HTTP {status}"):
            remote_read(address, chosen, tmp_path / "out")
        assert len(endpoint.calls) == 4, "it was not tried again"
        assert load(tmp_path / "out" / "failure.json")["coverage"]["evaluated_records"] == 3
        report = remote_read(address, chosen, tmp_path / "out")
        assert len(endpoint.calls) == len(chosen.records) + 1
    assert report["resumed"] == {"attempts": 2, "records_read_before": 3}


def test_retries_end_at_their_cap_and_a_long_retry_after_is_not_waited_for(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection
) -> None:
    busy: Misbehaviour = lambda _: (503, {"retry-after": "3600"}, {})  # noqa: E731
    with (
        misbehaving(scorer, busy) as (endpoint, address),
        pytest.raises(EndpointFailed, match="would pass 60 s of retries"),
    ):
        remote_read(address, chosen, tmp_path / "out")
    assert len(endpoint.calls) == 1


def test_a_server_that_takes_one_call_at_a_time_survives_eight_threads(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection
) -> None:
    with misbehaving(scorer, most_at_once=1) as (endpoint, address):
        report = remote_read(address, chosen, tmp_path / "out", concurrency=8)
    assert report["coverage"]["evaluated_records"] == len(chosen.records)
    turned_away = Counter(endpoint.statuses)[529]
    assert turned_away < len(chosen.records), "the pace falls to what the server takes, instead of hammering it"


def test_the_budget_stops_a_read_before_the_call_that_could_pass_it(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection
) -> None:
    # A call is reserved at 65,536 tokens and costs 1,000: ten calls fit beside one reservation, the eleventh does not.
    budget = Decimal(RESERVED_TOKENS + 10_000) / 1_000_000
    with misbehaving(scorer) as (endpoint, address):
        for concurrency in (1, 4):
            with pytest.raises(CapReached, match="over its budget"):
                remote_read(address, chosen, tmp_path / "out", concurrency=concurrency,
                            tariff=Tariff(Decimal(1), budget))  # fmt: skip
            assert len(endpoint.calls) == 11
            usage = load(tmp_path / "out" / "usage.json")
            assert (usage["calls"], usage["reserved_input_tokens"]) == (11, 0)
        report = remote_read(address, chosen, tmp_path / "out", tariff=Tariff(Decimal(1), Decimal(1)))
        assert len(endpoint.calls) == len(chosen.records), "nothing that was paid for is paid for again"
    assert report["resumed"]["attempts"] == 3


def test_a_cap_on_calls_counts_those_of_earlier_attempts(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection
) -> None:
    with misbehaving(scorer) as (endpoint, address):
        for _ in range(2):
            with pytest.raises(CapReached, match="cap of 7 calls"):
                remote_read(address, chosen, tmp_path / "out", concurrency=3, tariff=Tariff(max_calls=7))
        assert len(endpoint.calls) == 7


def test_calls_that_were_under_way_at_a_kill_count_in_full(tmp_path: Path) -> None:
    tariff = Tariff(Decimal(1), Decimal(1))
    purse = Purse(tmp_path / "usage.json", "m", tariff, SystemClock())
    purse.settle(purse.reserve(10), 500, 5)
    purse.reserve(100_000)  # and here the process dies
    found = Purse(tmp_path / "usage.json", "m", tariff, SystemClock())
    found.save()
    usage = load(tmp_path / "usage.json")
    assert usage["calls"] == 2 and usage["lost_input_tokens"] == 100_000 and usage["reserved_input_tokens"] == 0
    assert usage["estimated_usd"] == pytest.approx(0.1005)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"not json", "no answer"),
        (b"[" * 100_000, "no answer"),
        ({"model": "kev-latest"}, "missing or of another shape"),
        ({"model": "kev-latest", "answers": {"answer": {"probabilities": {"a": 1}}}}, "on one side only"),
        (b'{"model": "kev-latest", "answers": {"answer": {"noul": NaN}}}', "outside|finite|missing|other shape"),
    ],
)
def test_an_answer_that_is_none_ends_the_read_in_one_line(
    tmp_path: Path, scorer: LinearScorer, answer: Any, says: str
) -> None:
    chosen = select_partition(open_suite(EVALS / "skills-v1"), "development").sample(4)
    with misbehaving(scorer, lambda _: (200, {}, answer)) as (_, address):  # noqa: SIM117
        with pytest.raises(EndpointFailed, match=says) as failed:
            remote_read(address, chosen, tmp_path / "out")
    assert "\n" not in str(failed.value)


def test_an_endless_answer_is_cut_off(tmp_path: Path, scorer: LinearScorer, chosen: Selection) -> None:
    with (
        misbehaving(scorer, lambda _: (200, {}, b" " * 9_000_000)) as (_, address),
        pytest.raises(EndpointFailed, match="more than 8,388,608 bytes"),
    ):
        remote_read(address, chosen, tmp_path / "out")


def test_a_redirect_takes_no_token_anywhere(tmp_path: Path, scorer: LinearScorer, chosen: Selection) -> None:
    with misbehaving(scorer) as (other, elsewhere):
        moved = (307, {"location": f"{elsewhere}/v1/systemone"}, {})
        with misbehaving(scorer, lambda _: moved) as (first, address), pytest.raises(EndpointFailed, match="307"):
            remote_read(address, chosen, tmp_path / "out", token="a-secret-token-of-ours")
        assert first.calls[0]["headers"]["authorization"] == "Bearer a-secret-token-of-ours"
        assert not other.calls
    assert "a-secret" not in "".join(path.read_text() for path in (tmp_path / "out").iterdir())


def test_an_endpoint_that_changes_its_model_ends_the_read(
    tmp_path: Path, scorer: LinearScorer, chosen: Selection
) -> None:
    with misbehaving(scorer) as (endpoint, address):
        original = endpoint.RequestHandlerClass._answer  # type: ignore[attr-defined]

        class Handler(endpoint.RequestHandlerClass):  # type: ignore[name-defined,misc]
            def _answer(self, data: bytes) -> dict[str, Any]:
                answer: dict[str, Any] = original(self, data)
                return answer | ({"model": "another"} if len(endpoint.calls) > 3 else {})

        endpoint.RequestHandlerClass = Handler
        with pytest.raises(EndpointFailed, match="one read, one model"):
            remote_read(address, chosen, tmp_path / "out")


def test_the_command_reads_an_endpoint_and_prints_what_it_found(
    tmp_path: Path, scorer: LinearScorer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEV_REMOTE_API_KEY", "a-token-of-sixteen")
    lines = (EVALS / "heldout-stock-v1" / "calibration.jsonl").read_bytes().splitlines(keepends=True)
    data = tmp_path / "some.jsonl"
    data.write_bytes(b"".join(lines[:60]))
    with served(scorer, token="a-token-of-sixteen") as address:
        code = main(["--remote", address, "--data", str(data), "--out", str(tmp_path / "out"), "--price", "0.042",
                     "--budget", "1"])  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0
    assert "evaluated 50/60" in out and "evaluated 60/60" in out
    shown = json.loads(out[out.index("{") :])
    assert shown["coverage"]["evaluated_records"] == 60 and shown["clean"]["n"] == 60


def test_an_endpoint_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--remote", "http://127.0.0.1:9", "--suite", str(EVALS / "heldout-stock-v1"), "--retry-seconds", "0",
                 "--out", str(tmp_path / "out")])  # fmt: skip
    error = capsys.readouterr().err
    assert code == 1 and error.count("\n") == 1 and "no connection" in error


@pytest.mark.parametrize("url", ["ftp://h", "h:80", "http://", "http://user:secret@h", "http://h/?key=1"])
def test_addresses_that_are_no_endpoint_are_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(UsageError):
        Endpoint(url)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=255).filter(lambda values: sum(values) > 0))
def test_rounding_to_four_decimals_never_makes_a_distribution_unbelievable(weights: list[float]) -> None:
    keys = [str(number) for number in range(len(weights))]
    total = sum(weights)
    answer = answer_of({key: round(value / total, 4) for key, value in zip(keys, weights, strict=True)}, keys)
    assert abs(sum(answer.p) - 1) < 1e-9
    assert abs(answer.total - 1) <= tolerance(len(keys))


@pytest.mark.parametrize(
    "values",
    [{"a": 1.0}, {"a": 0.5, "b": 0.6}, {"a": -0.1, "b": 1.1}, {"a": float("nan"), "b": 1}, {"a": "0.5", "b": 0.5},
     {"a": 0.5, "b": 0.5, "c": 0.0}, {"a": True, "b": 0}, {"a": 0, "b": 0}],
)  # fmt: skip
def test_what_is_no_distribution_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(BadDistribution):
        answer_of(values, ["a", "b"])


@given(st.lists(st.booleans(), max_size=200))
def test_the_pace_stays_between_one_and_its_most(answers: list[bool]) -> None:
    pace = Pace(8)
    for served_well in answers:
        pace.note_served() if served_well else pace.note_busy()
        assert 1 <= pace.allowed <= 8


def test_retry_after_is_a_number_of_seconds_or_a_date() -> None:
    now = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    assert parse_retry_after("120", now) == 120
    assert parse_retry_after("Fri, 01 May 2026 12:00:30 GMT", now) == 30
    assert parse_retry_after("Fri, 01 May 2026 11:00:00 GMT", now) == 0
    for odd in (None, "", "soon", "-5", "1e9", "٣"):
        assert parse_retry_after(odd, now) is None


@given(st.integers(1, 10_000), st.floats(0, 1), st.none() | st.floats(0, 1e6))
def test_waits_grow_to_their_longest_and_never_undercut_the_endpoint(
    tries: int, drawn: float, asked: float | None
) -> None:
    policy = RetryPolicy(first=1.0, longest=30.0, chance=lambda: drawn)
    wait = policy.wait(tries, asked)
    assert wait >= (asked or 0)
    assert asked is not None or 0.5 <= wait <= 30.0


def test_a_read_without_training_is_still_a_read(tmp_path: Path, chosen: Selection) -> None:
    with served(LinearScorer(fit([]))) as address:
        report = remote_read(address, chosen, tmp_path / "out")
    assert isinstance(report["objective"], float)
