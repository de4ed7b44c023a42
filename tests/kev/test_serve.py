"""The server answers as the API says, says no in words, and is not reached by whom it is not meant for."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from endpoints import served
from hypothesis import given
from hypothesis import strategies as st
from linear_scorer import EncodedText, LinearScorer, trained_scorer

from kev.data.record import Asked
from kev.errors import Refused
from kev.linear import fit
from kev.serve import AddressTaken, bind, check_exposure, is_loopback, main
from kev.serving.answers import answer_json, choice_confidence, score_confidence
from kev.serving.engine import Engine, ScoringFailed, Stopped
from kev.serving.schema import Unprocessable, parse_request

TOKEN = "a-token-of-some-length"
BODY = {
    "state": {"ticket": "The parcel is late."},
    "model": "kev-mine",
    "extra": "ignored",
    "questions": {
        "team": {"type": "choice", "instructions": "Which?", "criteria": {"parcels": "late parcels", "bills": None}},
        "late": {"type": "noul"},
        "urgency": {"type": "score", "criteria": ["low", "normal", {"what": "high"}]},
        "only": {"type": "score", "criteria": ["one"]},
    },
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(trained_scorer(), max_body_bytes=20_000) as found:
        yield found


def post(address: str, body: Any, **settings: Any) -> httpx.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{address}/v1/systemone", content=data, trust_env=False, **settings)


def test_every_type_of_question_is_answered_in_its_shape(address: str) -> None:
    response = post(address, BODY)
    value = response.json()
    assert response.status_code == 200
    assert value["model"] == "kev-mine"
    assert value["answers"].keys() == BODY["questions"].keys()  # type: ignore[attr-defined]
    team, late = value["answers"]["team"], value["answers"]["late"]
    assert team.keys() == {"type", "choice", "confidence", "probabilities"}
    assert team["probabilities"].keys() == {"parcels", "bills"}
    assert late.keys() == {"type", "noul"} and 0 <= late["noul"] <= 1
    urgency = value["answers"]["urgency"]
    assert urgency["legend"] == {"0": "low", "1": "normal", "2": "what: high"}
    assert urgency["probabilities"].keys() == {"0", "1", "2"}
    only = value["answers"]["only"]
    assert (only["score"], only["confidence"], only["probabilities"]) == (0.0, 1.0, {"0": 1.0})
    assert value["usage"]["input_tokens"] > 0 and value["usage"]["output_tokens"] > 0
    assert value["latency_ms"] >= 0


def test_every_answer_carries_its_id_and_how_long_it_took(address: str) -> None:
    response = post(address, BODY, headers={"x-typesafe-request-id": "mine-1"})
    assert response.headers["x-typesafe-request-id"] == "mine-1"
    assert response.headers["server-timing"].startswith("app;dur=")
    forged = post(address, BODY, headers={"x-typesafe-request-id": "a b<c>"})
    assert forged.headers["x-typesafe-request-id"].isalnum()


def test_models_are_listed_with_what_serves_them(address: str) -> None:
    cards = httpx.get(f"{address}/v1/models", trust_env=False).json()["models"]
    assert [card["name"] for card in cards] == ["kev-latest", "jev-latest"]
    assert all(card["run"] == "linear" and card["temperature"] == 1.0 and "release_date" in card for card in cards)
    assert httpx.get(f"{address}/health", trust_env=False).json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not JSON: line 1"),
        (b"\xff", "not UTF-8"),
        (b"[" * 20_000, "nested|not JSON"),
        (b'{"state": NaN, "questions": {"q": {"type": "noul"}}}', "NaN is not a number"),
        (b'{"state": 1, "state": 2, "questions": {"q": {"type": "noul"}}}', "'state' is given twice"),
        ([], "the body is an object"),
        ({"questions": {"q": {"type": "noul"}}}, "state: missing"),
        ({"state": 1}, "questions: "),
        ({"state": 1, "questions": {}}, "questions: "),
        ({"state": 1, "questions": {"q": 1}}, "questions.q: "),
        ({"state": 1, "questions": {"q": {"type": "essay"}}}, "questions.q.type: .*'essay'"),
        ({"state": 1, "questions": {"q": {"type": "choice"}}}, "questions.q.criteria: "),
        ({"state": 1, "questions": {"q": {"type": "choice", "criteria": {}}}}, "questions.q.criteria: "),
        ({"state": 1, "questions": {"q": {"type": "score", "criteria": ["x"] * 256}}}, "1 to 255"),
        ({"state": 1, "questions": {"q": {"type": "noul", "criteria": ["x"]}}}, "questions.q.criteria: "),
        ({"state": 1, "model": 5, "questions": {"q": {"type": "noul"}}}, "model: "),
        ({"state": json.loads("[" * 90 + "]" * 90), "questions": {"q": {"type": "noul"}}}, "state: nested"),
    ],
)
def test_a_request_that_cannot_be_meant_is_422_and_says_where(address: str, body: Any, says: str) -> None:
    response = post(address, body)
    assert response.status_code == 422
    with pytest.raises(Unprocessable, match=says) as found:
        parse_request(body if isinstance(body, bytes) else json.dumps(body).encode(), "r")
    assert response.json() == {"detail": str(found.value)}


def test_a_state_over_the_limit_is_422_and_says_how_long(address: str) -> None:
    with served(LinearScorer(fit([]), max_state=3)) as small:
        response = post(small, BODY | {"state": "one two three four"})
    assert response.status_code == 422
    assert "a state of 4 tokens, over the limit of 3" in response.json()["detail"]


def test_a_body_over_the_limit_is_413_announced_or_not(address: str) -> None:
    large = BODY | {"state": "x" * 30_000}
    assert post(address, large).status_code == 413
    chunks = (json.dumps(large).encode()[start : start + 1000] for start in range(0, 31_000, 1000))
    with suppress(httpx.WriteError):  # it may hang up while we are still sending, which is an answer too
        assert httpx.post(f"{address}/v1/systemone", content=chunks, trust_env=False).status_code == 413
    assert post(address, BODY).status_code == 200


def test_methods_and_paths_that_are_not_there_are_refused(address: str) -> None:
    assert httpx.get(f"{address}/v1/systemone", trust_env=False).status_code == 405
    assert httpx.get(f"{address}/v1/other", trust_env=False).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8008", "127.0.0.1.evil.example", ""])
def test_without_a_token_only_callers_that_name_this_machine_are_answered(address: str, host: str) -> None:
    assert post(address, BODY, headers={"host": host}).status_code == 400
    assert post(address, BODY, headers={"host": "localhost:1"}).status_code == 200


def test_a_token_is_asked_for_under_v1_and_nothing_else_will_do() -> None:
    with served(trained_scorer(), token=TOKEN) as address:
        assert (
            post(address, BODY, headers={"authorization": f"Bearer {TOKEN}", "host": "any.example"}).status_code == 200
        )
        for given in ("", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer"):
            response = post(address, BODY, headers={"authorization": given} if given else {})
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert httpx.get(f"{address}/v1/models", trust_env=False).status_code == 401
        assert httpx.get(f"{address}/health", trust_env=False).status_code == 200


class Gated(LinearScorer):
    """Scores only while its gate is open, so that requests pile up behind it."""

    gate: threading.Event
    reached: threading.Event

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        self.reached.set()
        self.gate.wait()
        return super().score(encoded)


def gated() -> Gated:
    scorer = Gated(fit([]))
    scorer.gate, scorer.reached = threading.Event(), threading.Event()
    return scorer


class Counting(Engine):
    """Says when it has been given a number of requests."""

    def __init__(self, scorer: LinearScorer, wanted: int, **settings: Any) -> None:
        super().__init__(scorer, **settings)
        self.left = wanted
        self.given = threading.Event()

    def submit(self, encoded: Any) -> "Future[Any]":
        future = super().submit(encoded)
        self.left -= 1
        if not self.left:
            self.given.set()
        return future


def test_requests_that_come_together_are_scored_together() -> None:
    scorer = gated()
    engine = Counting(scorer, wanted=9)
    with served(scorer, engine=engine) as address, ThreadPoolExecutor(9) as threads:
        waiting = [threads.submit(post, address, BODY)]
        scorer.reached.wait()
        waiting += [threads.submit(post, address, BODY) for _ in range(8)]
        engine.given.wait()  # the first is at the gate, the others queue behind it
        scorer.gate.set()
        assert {each.result().status_code for each in waiting} == {200}
    assert scorer.scored == [1, 8]
    assert (engine.batches, engine.requests) == (2, 9)


def test_more_than_may_wait_are_turned_away_with_a_time_to_come_back() -> None:
    scorer = gated()
    engine = Engine(scorer, waiting=1)
    with served(scorer, engine=engine) as address, ThreadPoolExecutor(2) as threads:
        first = threads.submit(post, address, BODY)
        scorer.reached.wait()
        engine.submit(scorer.encode(parse_request(json.dumps(BODY).encode(), "r")[0]))
        response = post(address, BODY)
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        scorer.gate.set()
        assert first.result().status_code == 200


class Failing(LinearScorer):
    """Fails on states that say so, and on every batch with one of them."""

    def score(self, encoded: Sequence[EncodedText]) -> list[list[list[float]]]:
        if any("too much" in str(each.request.state) for each in encoded):
            raise MemoryError
        return super().score(encoded)


def test_a_request_that_breaks_a_batch_costs_only_its_own_answer() -> None:
    scorer = Failing(fit([]))
    engine = Engine(scorer)
    states = ["fine", "too much", "fine too"]
    encoded = [scorer.encode(parse_request(json.dumps(BODY | {"state": s}).encode(), s)[0]) for s in states]
    futures = [engine.submit(each) for each in encoded]
    engine.start()
    assert [len(futures[place].result().logits) for place in (0, 2)] == [4, 4]
    with pytest.raises(ScoringFailed, match="MemoryError"):
        futures[1].result()
    engine.stop()
    with served(scorer) as address:
        assert post(address, BODY | {"state": "too much"}).status_code == 500
        assert post(address, BODY).status_code == 200, "the thread lives on"


def test_an_engine_that_stops_turns_away_whoever_waits() -> None:
    scorer = gated()
    engine = Engine(scorer, batch=1)
    encoded = scorer.encode(parse_request(json.dumps(BODY).encode(), "r")[0])
    futures = [engine.submit(encoded) for _ in range(3)]
    engine.start()
    scorer.reached.wait()
    stopping = threading.Thread(target=engine.stop)
    stopping.start()
    engine.stopped.wait()
    with pytest.raises(Stopped):
        engine.submit(encoded)
    scorer.gate.set()
    stopping.join()
    assert len(futures[0].result().logits) == 4
    for future in futures[1:]:
        with pytest.raises(Stopped):
            future.result()


@pytest.mark.parametrize(
    ("host", "inside"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.5", False), ("localhost.example", False)],
)  # fmt: skip
def test_an_address_beyond_this_machine_needs_a_token(host: str, inside: bool) -> None:
    assert is_loopback(host) == inside
    if inside:
        check_exposure(host, None)
    else:
        with pytest.raises(Refused, match="KEV_API_KEY"):
            check_exposure(host, None)
    check_exposure(host, TOKEN)
    with pytest.raises(Refused, match="at least 16"):
        check_exposure(host, "short")


def test_the_command_refuses_to_be_reached_from_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEV_API_KEY", raising=False)
    assert main(["--run", "nowhere", "--host", "0.0.0.0"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_an_address_that_is_taken_is_named() -> None:
    listening = bind("127.0.0.1", 0)
    with listening, pytest.raises(AddressTaken, match="try --port 0"):
        bind("127.0.0.1", listening.getsockname()[1])


PROCESS = """
import sys
sys.path.insert(0, {tests!r})
from linear_scorer import trained_scorer
from kev.serve import bind, serve
from kev.serving.app import Settings
listening = bind("127.0.0.1", 0)
print(listening.getsockname()[1], flush=True)
serve(trained_scorer(), Settings("linear"), listening)
"""


def test_a_server_process_ends_cleanly_when_it_is_told_to() -> None:
    here = Path(__file__).parent
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS.format(tests=str(here))], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=here.parents[1], env=os.environ | {"PYTHONPATH": str(here.parents[1])},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    with process:
        port = int(process.stdout.readline())
        # The socket listens before the model is there: a caller waits, and is not turned away.
        assert post(f"http://127.0.0.1:{port}", BODY, timeout=60).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
        assert "Traceback" not in process.stderr.read()


def test_confidences_are_those_of_the_worked_example() -> None:
    assert choice_confidence([0.5, 0.3, 0.2]) == pytest.approx(0.25)
    assert score_confidence([0.1, 0.3, 0.6]) == pytest.approx(0.75)
    score = Asked.model_construct(type="score", instructions=None, criteria=["a", "b", "c"])
    assert answer_json(score, [0.1, 0.3, 0.6])["score"] == 1.5


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=255))
def test_confidences_lie_between_nothing_and_certainty(weights: list[float]) -> None:
    total = sum(weights)
    p = [weight / total for weight in weights]
    for confidence in (choice_confidence(p), score_confidence(p)):
        assert -1e-9 <= confidence <= 1 + 1e-9
