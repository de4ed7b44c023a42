"""What was acknowledged is there after any kill, once."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from grading import Client, run_of, worth
from model_directories import model

from kev.autorl.scores import read_scores
from kev.autorl.store import Store, grader_key

HERE = Path(__file__).parent


@contextmanager
def process(root: Path) -> Iterator[tuple["subprocess.Popen[str]", Client]]:
    """The server as a process of its own, which may be dead at the end."""
    path = os.pathsep.join([str(HERE), str(HERE.parents[2])])
    started = subprocess.Popen(
        [sys.executable, str(HERE / "stand_in_server.py"), str(root), "0"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert started.stdout is not None
    try:
        port = started.stdout.readline().strip()
        assert port, "the server did not start"
        yield started, Client(f"http://127.0.0.1:{port}")
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


def submit(
    client: Client, order: list[int], acknowledged: dict[int, str], target: int, enough: threading.Event
) -> None:
    """Submit models in an order, some without waiting, until the server is killed; sets `enough` at the target."""
    for number in order:
        try:
            answer = client.submit(f"output/v{number}", wait=bool(number % 2))
        except httpx.TransportError:
            return
        acknowledged[answer.json()["submission_id"]] = f"output/v{number}"
        if len(acknowledged) >= target:
            enough.set()
    enough.set()


def kill_again_and_again(root: Path, kills: int, models: int, seed: int) -> None:
    draw = random.Random(seed)
    run = run_of(root)
    for number in range(models):
        model(run.workspace.output / f"v{number}", worth(20 + number % 70, seed=number))
    acknowledged: dict[int, str] = {}
    for _ in range(kills):
        with process(root) as (server, client):
            enough = threading.Event()
            target = len(acknowledged) + draw.randint(1, 6)

            orders = [draw.sample(range(models), models) for _ in range(3)]
            threads = [
                threading.Thread(target=submit, args=(client, each, acknowledged, target, enough)) for each in orders
            ]
            for thread in threads:
                thread.start()
            enough.wait(30)
            server.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join()
    with process(root) as (_, client):
        answers = {f"output/v{number}": client.score(f"output/v{number}") for number in range(models)}
        assert client.get("/health").json()["waiting"] == 0
    entries = read_scores(run.workspace.scores).entries
    assert [entry.submission_id for entry in entries] == list(range(1, models + 1))
    assert {entry.submission_id: entry.model_path for entry in entries}.items() >= acknowledged.items()
    assert {entry.model_path: entry.submission_id for entry in entries} == {
        path: answer["submission_id"] for path, answer in answers.items()
    }
    store = Store(run.home / "store.jsonl", grader_key(run.shared))
    graded = [event.facts["number"] for event in store.events if event.kind == "graded"]
    assert sorted(graded) == list(range(1, models + 1))
    evaluations = (root / "evaluations").read_text().splitlines()
    assert len([line for line in evaluations if "sealed" in line]) <= models + kills, (
        "only what a kill cut off is redone"
    )


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, kills=3, models=12, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_many_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path, kills=25, models=60, seed=seed)
