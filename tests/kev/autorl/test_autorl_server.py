"""The grading server grades each submission once, keeps what it acknowledged, and says no in words."""

import json
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from grading import BASE, BASE_SCORE, Client, StandIn, run_of, served, worth
from model_directories import model, safetensors

from kev.autorl.grader import Grader
from kev.autorl.run import available_gpus
from kev.autorl.scores import read_scores
from kev.errors import DamagedFile, LockHeld, Refused


@pytest.fixture
def evaluator() -> StandIn:
    return StandIn()


def test_a_score_comes_with_the_best_and_the_count_and_lies_in_the_workspace(
    tmp_path: Path, evaluator: StandIn
) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    model(run.workspace.output / "v2", worth(30, seed=2))
    with served(run, evaluator) as found:
        first, second = found.client.score("output/v1"), found.client.score(str(run.workspace.output / "v2"))
        clock = found.client.get("/time").json()
    assert (first["submission_id"], first["score"], first["improvement"], first["label"]) == (1, 40, 20, "gain")
    assert first["baseline_score"] == BASE_SCORE and first["total_submissions"] == 1
    assert (second["submission_id"], second["best"]["submission_id"], second["total_submissions"]) == (2, 1, 2)
    assert second["submissions_left"] == 18
    view = json.loads(run.workspace.scores.read_text())
    assert [each["submission_id"] for each in view] == [1, 2]
    assert view[0].keys() == {"submission_id", "timestamp", "model_path", "score", "baseline_score", "improvement",
                              "elapsed_seconds", "label"}  # fmt: skip
    meta = json.loads(run.workspace.run_meta.read_text())
    assert meta.keys() == {"start_time", "timeout_s", "last_submit_time", "end_time"}
    assert meta["last_submit_time"] is not None and meta["end_time"] is None
    assert clock["remaining"] > 3000 and clock["start_time"] == meta["start_time"] and clock["notices"] == []


def test_two_hundred_submits_of_twenty_models_are_graded_once_each_one_at_a_time(
    tmp_path: Path, evaluator: StandIn
) -> None:
    run = run_of(tmp_path)
    for number in range(20):
        model(run.workspace.output / f"v{number}", worth(20 + number, seed=number))
    with served(run, evaluator) as found, ThreadPoolExecutor(25) as threads:
        clients = [Client(found.address) for _ in range(25)]
        answers = list(threads.map(lambda n: clients[n % 25].score(f"output/v{n % 20}"), range(200)))
        assert found.client.submit("output/v0").json()["submissions_left"] == 0
        model(run.workspace.output / "more", worth(90))
        assert found.client.submit("output/more").json()["code"] == "no_submissions_left"
    assert len(evaluator.graded) == 20 and len({each.model for each in evaluator.graded}) == 20
    assert Counter(answer["model_path"] for answer in answers) == {f"output/v{n}": 10 for n in range(20)}
    assert len({(answer["model_path"], answer["submission_id"], answer["score"]) for answer in answers}) == 20
    entries = read_scores(run.workspace.scores).entries
    assert [entry.submission_id for entry in entries] == list(range(1, 21))
    assert {entry.model_path: entry.score for entry in entries} == {f"output/v{n}": pytest.approx(20 + n, abs=1e-4)
                                                                    for n in range(20)}  # fmt: skip


def test_an_answer_that_was_lost_costs_nothing_and_the_same_content_keeps_its_id(tmp_path: Path) -> None:
    evaluator = StandIn(seconds=0.3)
    run = run_of(tmp_path)
    directory = model(run.workspace.output / "v1", worth(40))
    with served(run, evaluator) as found:
        host, _, port = found.address.removeprefix("http://").rpartition(":")
        body = b'{"model_path": "output/v1"}'
        for _ in range(2):
            with socket.create_connection((host, int(port))) as wire:  # asks, and hangs up before the answer
                wire.sendall(
                    b"POST /submit HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
                )
        assert found.client.score("output/v1")["submission_id"] == 1
        assert found.client.score("output/v1")["total_submissions"] == 1
        assert len(evaluator.graded) == 1
        # The same bytes elsewhere are an entry of their own, and no evaluation.
        directory.rename(run.workspace.output / "v2")
        moved = found.client.score("output/v2")
        assert (moved["submission_id"], moved["score"]) == (2, 40) and len(evaluator.graded) == 1
        assert moved["submissions_left"] == 19


def test_weights_that_change_while_they_are_graded_are_another_submission(tmp_path: Path) -> None:
    evaluator = StandIn(seconds=0.3)
    run = run_of(tmp_path)
    path = model(run.workspace.output / "v1", worth(40)) / "model.safetensors"
    with served(run, evaluator) as found:
        assert found.client.submit("output/v1", wait=False).json() == {"submission_id": 1, "status": "waiting"}
        path.write_bytes(safetensors(worth(95)))
        assert found.client.score("output/v1")["submission_id"] == 2
        assert found.client.get("/submissions/1").json()["score"] == 40, "it has the score of the bytes it was sent as"
        assert found.client.get("/submissions/2").json()["score"] == 95


def test_what_was_decided_about_left_overs_is_in_the_answer(tmp_path: Path, evaluator: StandIn) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40), adapter_config__json=b'{"peft_type": "LORA"}')
    model(run.workspace.output / "v2", worth(41))
    with served(run, evaluator) as found:
        assert found.client.score("output/v1")["remarks"] == [
            "adapter_config.json left beside whole weights, used without it"
        ]
        assert "remarks" not in found.client.score("output/v2")


def test_a_failed_grading_is_passed_on_and_never_an_answer_to_the_next(tmp_path: Path, evaluator: StandIn) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    with served(run, evaluator) as found:
        found.client.score("output/v1")
        model(run.workspace.output / "v2", worth(50))
        evaluator.says = {"score": None, "error": "out of memory\x1b[2J"}
        failed = found.client.score("output/v2")
        evaluator.says = {}
        again = found.client.score("output/v2")
    assert failed["error"] == "out of memory\\x1b[2J" and failed["score"] is None and failed["improvement"] is None
    assert failed["best"]["submission_id"] == 1 and failed["submissions_left"] == 19
    assert (again["submission_id"], again["score"]) == (3, 50)
    assert [entry.submission_id for entry in read_scores(run.workspace.scores).errors] == [2]


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"score": float("nan")}, "nan is no number"), ({"score": float("inf")}, "no number from 0 to 100"),
        ({"score": 100.5}, "100.5"), ({"score": -1.0}, "-1"), ({"score": None}, "gave no score"),
        ({"items": 0}, "no item"),
    ],
)  # fmt: skip
def test_a_score_that_is_none_is_an_error_and_the_server_goes_on(
    tmp_path: Path, evaluator: StandIn, says: dict[str, Any], words: str
) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    with served(run, evaluator) as found:
        model(run.workspace.output / "v2", worth(41))
        found.client.score("output/v2")
        evaluator.says = says
        failed = found.client.score("output/v1")
        evaluator.says = {}
        assert found.client.score("output/v1")["score"] == 40
    assert words in failed["error"] and failed["score"] is None and failed["label"] == "error"


def test_a_base_that_cannot_be_graded_leaves_no_baseline_and_is_measured_again(
    tmp_path: Path, evaluator: StandIn
) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    with served(run, evaluator) as found:
        evaluator.says = {"score": None, "error": "no such device"}
        found.client.score("output/v1")
        evaluator.says = {}
        assert found.grader.ledger.baseline is None and not list((run.shared / "baselines").glob("*"))
        again = found.client.score("output/v1")
    assert again["baseline_score"] == BASE_SCORE and again["improvement"] == 20


def test_the_base_is_measured_three_times_and_once_for_all_runs_of_a_task(tmp_path: Path, evaluator: StandIn) -> None:
    for name in ("one", "two"):
        run = run_of(tmp_path, home=tmp_path / ".grader" / name)
        with served(run, evaluator) as found:
            model(run.workspace.output / "v1", worth(40))
            found.client.score("output/v1")
    assert [each.seed for each in evaluator.asked if each.model == run.base] == [0, 1, 2]
    evaluator.identity = "another evaluator"
    with served(run_of(tmp_path, home=tmp_path / ".grader" / "three"), evaluator) as found:
        found.client.score("output/v1")
    assert len([each for each in evaluator.asked if each.model == run.base]) == 6


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_request"), (b"[]", 400, "bad_request"), (b"\xff", 400, "bad_request"),
        (b"[" * 60_000, 400, "bad_request"), (b"{}", 400, "bad_path"), (b'{"model_path": 5}', 400, "bad_path"),
        (b'{"model_path": "../x"}', 400, "path_outside"), (b'{"model_path": "/etc"}', 400, "path_outside"),
        (b'{"model_path": "output/v1\\u0000"}', 400, "bad_path"), (b'{"model_path": "none"}', 400, "missing_model"),
        (b'{"model_path": "output/v1", "gpu": "7"}', 400, "bad_gpu"),
        (b'{"model_path": "output/v1", "gpu": {}}', 400, "bad_gpu"),
        (b'{"model_path": "output/v1", "gpu": [1.5]}', 400, "bad_gpu"),
        (b'{"model_path": "output/v1", "wait": 1}', 400, "bad_request"),
        (b'{"model_path": "output/adapter"}', 400, "adapter"),
        (b'{"model_path": "output/torn"}', 400, "broken_weights"),
        (b'{"model_path": "output/pickle"}', 400, "no_safetensors"), (b" " * 70_000, 413, "too_large"),
    ],
)  # fmt: skip
def test_bad_input_has_its_documented_error_and_the_server_goes_on(
    tmp_path: Path, evaluator: StandIn, body: bytes, status: int, code: str
) -> None:
    run = run_of(tmp_path, gpus=("0", "3"))
    model(run.workspace.output / "v1", worth(40))
    torn = model(run.workspace.output / "torn", worth(50)) / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:-9])
    adapter = run.workspace.output / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.safetensors").write_bytes(safetensors(BASE))
    (run.workspace.output / "pickle").mkdir()
    (run.workspace.output / "pickle" / "pytorch_model.bin").write_bytes(b"x")
    with served(run, evaluator) as found:
        import httpx

        answer = httpx.post(f"{found.address}/submit", content=body, trust_env=False)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert code != "bad_gpu" or answer.json()["available_gpus"] == ["0", "3"]
        assert found.client.get("/health").json()["status"] == "healthy"
        assert found.client.submit("output/v1", gpu="3").json()["submission_id"] == 1
    assert evaluator.graded[0].gpus == ("3",)
    documented = (Path(__file__).parents[3] / "docs" / "autorl.md").read_text()
    assert f"`{code}`" in documented


@pytest.mark.parametrize("number", ["0", "-1", "1.0", "x", "9" * 5000, "%D9%A1"])
def test_what_is_the_number_of_no_submission_is_said_to_be_unknown(
    tmp_path: Path, evaluator: StandIn, number: str
) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    with served(run, evaluator) as found:
        assert found.client.score("output/v1") == found.client.get("/submissions/1").json()
        answer = found.client.get(f"/submissions/{number}")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_submission")


def test_a_body_of_a_gigabyte_is_refused_before_it_is_sent(tmp_path: Path, evaluator: StandIn) -> None:
    with served(run_of(tmp_path), evaluator) as found:
        host, _, port = found.address.removeprefix("http://").rpartition(":")
        for head in (b"content-length: 1073741824", b"transfer-encoding: chunked"):
            with socket.create_connection((host, int(port))) as wire:
                wire.sendall(b"POST /submit HTTP/1.1\r\nhost: localhost\r\n" + head + b"\r\n\r\n")
                if b"chunked" in head:
                    wire.sendall((b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 2)
                assert wire.recv(1000).startswith(b"HTTP/1.1 413 ")
        assert found.client.get("/health").status_code == 200


def test_with_a_token_nobody_without_it_is_heard(tmp_path: Path, evaluator: StandIn) -> None:
    token = "a-token-of-some-length"
    with served(run_of(tmp_path), evaluator, token=token) as found:
        for wrong in (None, "another-token-of-some", token + "x", "é"):
            client = Client(found.address)
            headers = {} if wrong is None else {"authorization": f"Bearer {wrong}".encode()}
            answer = client.post("/submit", {"model_path": "output/v1"}, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "wrong_token")
        assert found.client.get("/health").status_code == 200
        assert Client(found.address).post("/submit", {}, headers={"x-grading-token": token}).status_code == 400


def test_without_a_token_only_names_of_this_machine_are_answered(tmp_path: Path, evaluator: StandIn) -> None:
    with served(run_of(tmp_path), evaluator) as found:
        answer = Client(found.address).post("/submit", {}, headers={"host": "evil.example"})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_host")


def test_visible_devices_are_what_may_be_asked_for() -> None:
    assert available_gpus({"CUDA_VISIBLE_DEVICES": "1, GPU-x,"}) == ("1", "GPU-x")
    assert available_gpus({}) == ()


# ------------------------------------------------------------------------------------------------- the end


def test_the_final_is_graded_on_hidden_items_and_three_draws_for_the_last_choice(
    tmp_path: Path, evaluator: StandIn
) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    model(run.workspace.output / "v2", worth(30, seed=2))
    with served(run, evaluator) as found:
        found.client.score("output/v1")
        found.client.score("output/v2")
        assert found.client.post("/choose", {"submission_id": 9}).json()["code"] == "unknown_submission"
        assert found.client.post("/choose", {"submission_id": 2}).json() == {"chosen": 2}
        assert not [each for each in evaluator.asked if each.split == "hidden"]
        final = found.finish()
        assert found.finish() == final
        assert found.client.submit("output/v1").json()["code"] == "time_is_up"
        assert found.client.post("/choose", {"submission_id": 1}).json()["code"] == "time_is_up"
    hidden = [each for each in evaluator.asked if each.split == "hidden"]
    assert [each.seed for each in hidden if each.model != run.base] == [0, 1, 2]
    assert (final["submission_id"], final["verdict"], final["rules"]) == (2, "gain", "strict")
    assert final["score"] == pytest.approx(30, abs=1e-3) and final["improvement"] == pytest.approx(10, abs=1e-3)
    assert json.loads(run.workspace.final.read_text()) == final
    assert json.loads(run.workspace.run_meta.read_text())["end_time"] is not None


def test_without_a_choice_the_best_is_taken_and_a_gain_inside_the_noise_is_a_tie(
    tmp_path: Path, evaluator: StandIn
) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(21))
    model(run.workspace.output / "v2", worth(19, seed=2))
    with served(run, evaluator) as found:
        assert found.client.score("output/v1")["label"] == "tie"
        found.client.score("output/v2")
        final = found.finish()
    assert (final["submission_id"], final["verdict"]) == (1, "tie")
    assert 0 < final["improvement"] < final["half_width"]


def test_what_was_accepted_before_the_bell_is_graded_after_it(tmp_path: Path) -> None:
    evaluator = StandIn(seconds=0.2)
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    with served(run, evaluator) as found:
        assert found.client.submit("output/v1", wait=False).status_code == 202
        final = found.finish()
    assert (final["submission_id"], final["verdict"]) == (1, "gain")


def test_a_store_that_was_written_by_anybody_else_gives_no_verdict(tmp_path: Path, evaluator: StandIn) -> None:
    run = run_of(tmp_path)
    model(run.workspace.output / "v1", worth(40))
    store = run.home / "store.jsonl"
    with served(run, evaluator) as found:
        found.client.score("output/v1")
        lines = store.read_text().splitlines()
        store.write_text("\n".join([*lines, lines[-1]]) + "\n")
        model(run.workspace.output / "v2", worth(50))
        assert found.client.submit("output/v2").status_code == 500
        with pytest.raises(Refused, match="cannot be graded"):
            found.finish()
    with pytest.raises(DamagedFile, match="not written by the grader"):
        Grader(run, evaluator)
    store.write_text("\n".join(lines).replace('"score": 40.0', '"score": 90.0') + "\n")
    with pytest.raises(DamagedFile, match="not written by the grader"):
        Grader(run, evaluator)


def test_a_run_has_one_grader(tmp_path: Path, evaluator: StandIn) -> None:
    run = run_of(tmp_path)
    with served(run, evaluator), pytest.raises(LockHeld):
        Grader(run, evaluator)


def test_the_looser_rules_take_a_baseline_and_strangers_and_say_so(tmp_path: Path, evaluator: StandIn) -> None:
    from model_directories import tensors

    run = run_of(tmp_path, rules="compat", most_submissions=1)
    model(run.workspace.output / "v1", tensors(9))
    model(run.workspace.output / "v2", worth(40))
    with served(run, evaluator) as found:
        too_large = found.client.post("/set_baseline", {"score": 10**400})
        assert (too_large.status_code, too_large.json()["code"]) == (400, "bad_request")
        assert found.client.post("/set_baseline", {"score": 5}).json() == {"baseline_score": 5.0, "status": "ok"}
        stranger, second = found.client.score("output/v1"), found.client.score("output/v2")
        assert found.client.get("/health").json()["rules"] == "compat"
        final = found.finish()
    assert "error" not in stranger and stranger["improvement"] == 15 and second["improvement"] == 35
    assert final["rules"] == "compat" and final["verdict"] == "gain"


def test_accepted_work_is_graded_by_the_next_process_each_once(tmp_path: Path) -> None:
    run, slow = run_of(tmp_path), StandIn(seconds=30)
    for number in range(3):
        model(run.workspace.output / f"v{number}", worth(30 + number, seed=number))
    with served(run, StandIn()) as found:
        found.client.score("output/v0")
    with served(run, slow) as found:
        for number in range(3):
            found.client.submit(f"output/v{number}", wait=False)
    again = StandIn()
    with served(run, again) as found:
        assert [found.client.score(f"output/v{n}")["submission_id"] for n in range(3)] == [1, 2, 3]
    assert len(again.graded) == 2
    assert [entry.score for entry in read_scores(run.workspace.scores).entries] == pytest.approx([30, 31, 32], abs=1e-3)


def test_the_server_loads_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys, kev.autorl.server; print('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_clock_stands_still_until_the_run_begins(tmp_path: Path, evaluator: StandIn) -> None:
    with served(run_of(tmp_path), evaluator, start=False) as found:
        assert found.client.get("/time").json()["code"] == "not_allowed"
        assert found.client.submit("output/v1").json()["code"] == "not_allowed"
