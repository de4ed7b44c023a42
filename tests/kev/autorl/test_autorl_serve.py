"""`python -m kev.autorl serve` sees a run through: base, clock, submissions, bell, verdict."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from grading import Client, run_of, worth
from model_directories import model

from kev.autorl.serve import check_token, main
from kev.autorl.tasks import TaskRecord
from kev.errors import Refused

SUMMARY = """
import json, pathlib, struct, sys
data = (pathlib.Path(sys.argv[1]) / "model.safetensors").read_bytes()
size = int.from_bytes(data[:8], "little")
start = 8 + size + json.loads(data[8:8 + size])["model.norm.weight"]["data_offsets"][0]
score = 20 * struct.unpack_from("<f", data, start)[0]
out = pathlib.Path(sys.argv[2]) / "summary.csv"
out.write_text(f"dataset,version,metric,mode,m\\nmade-up,1,accuracy,gen,{score}\\n")
"""


def write_task(path: Path) -> Path:
    """A task whose scores a command reads off the weights, in a real grading process."""
    path.mkdir()
    (path / "summary.py").write_text(SUMMARY)
    command = [sys.executable, str(path / "summary.py"), "{model}", "{work_dir}"]
    record = TaskRecord(name="made-up", evaluator="opencompass", settings={"command": command, "items": 400})
    (path / "task.json").write_text(json.dumps(record.to_json()))
    return path


def start(root: Path, task: Path, **more: str) -> tuple["subprocess.Popen[str]", Client]:
    run = run_of(root)
    command = [
        sys.executable, "-m", "kev.autorl", "serve", "--workspace", str(run.workspace.directory),
        "--base", str(run.base), "--task", str(task), "--timeout", "6", "--submissions", "3",
    ]  # fmt: skip
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | more)
    assert started.stdout is not None
    address = started.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    return started, Client(address, more.get("KEV_AUTORL_TOKEN"))


def when_begun(started: "subprocess.Popen[str]") -> None:
    """Return once the clock runs: until then the base is being graded."""
    assert started.stdout is not None
    assert started.stdout.readline().startswith("the clock runs: ")


def test_a_run_is_served_to_its_verdict_over_a_kill(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    run = run_of(tmp_path / "root")
    model(run.workspace.output / "v1", worth(60))
    first, client = start(tmp_path / "root", task)
    when_begun(first)
    began = client.get("/time").json()["start_time"]
    assert client.submit("output/v1", wait=False).json()["submission_id"] == 1
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second, client = start(tmp_path / "root", task)
    when_begun(second)
    out, _ = second.communicate(timeout=120)
    final = json.loads(out)
    assert second.returncode == 0
    assert json.loads(run.workspace.run_meta.read_text())["start_time"] == began, "a second start gives no new time"
    assert (final["verdict"], final["submission_id"], final["rules"]) == ("gain", 1, "strict")
    assert final["validation"]["best"]["score"] == pytest.approx(60) and final["score"] == pytest.approx(60)
    assert json.loads(run.workspace.scores.read_text())[0]["label"] == "gain"


def test_a_token_is_taken_from_the_environment(tmp_path: Path) -> None:
    started, client = start(tmp_path / "root", write_task(tmp_path / "task"), KEV_AUTORL_TOKEN="sixteen-letters!")
    try:
        assert client.get("/health").status_code == 200
        assert Client(client.address).get("/health").json()["code"] == "wrong_token"
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=120)
    assert started.returncode == 130


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "set KEV_AUTORL_TOKEN"), (["--timeout", "0"], "above 0"),
        (["--workspace", "gone"], "no such directory"), (["--task", "arithmetics"], "did you mean arithmetic"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_said_in_a_line(
    tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path)
    given = {"--workspace": str(run.workspace.directory), "--base": str(run.base), "--task": "arithmetic"}
    given |= {options[0]: options[1]}
    assert main([word for pair in given.items() for word in pair]) == 1
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


def test_a_token_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(Refused, match="at least 16"):
        check_token("127.0.0.1", "short")
    check_token("0.0.0.0", "x" * 16)
    check_token("127.0.0.1", None)
