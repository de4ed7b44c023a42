"""`python -m kev.autorl run` sees an agent through: clean surroundings, notices, the bell, and nothing left of it."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from grading import worth
from model_directories import model
from test_autorl_serve import write_task

from kev.autorl.agent_folder import open_agent, shipped_agents
from kev.autorl.process_tree import descendants, marked
from kev.autorl.results import read_results
from kev.autorl.run_log import parse_run_log
from kev.autorl.workspace import Workspace
from kev.errors import DamagedFile, NotFound

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what left its group is found under /proc")


def write_agent(root: Path, script: str, config: str = "", name: str = "made-up-agent") -> Path:
    directory = root / name
    directory.mkdir(parents=True)
    (directory / "start.sh").write_text(script)
    (directory / "config.yaml").write_text(config)
    return directory


def base_of(root: Path) -> Path:
    return model(root / "bases" / "tiny", worth(20))


def command(root: Path, agent: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "kev.autorl", "run", "--agent", str(agent), "--task", str(write_task(root / "task")),
        "--model", str(base_of(root)), "--root", str(root / "runs"), "--grace", "0.5", "--json", *more,
    ]  # fmt: skip


def run(root: Path, script: str, *more: str, code: int = 0, config: str = "", **environment: str) -> dict[str, object]:
    agent = write_agent(root / "agents", script, config)
    done = subprocess.run(
        command(root, agent, *more), capture_output=True, text=True, timeout=120, env=os.environ | environment
    )
    assert done.returncode == code, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def workspace_of(root: Path) -> Workspace:
    (directory,) = (root / "runs" / "made-up").iterdir()
    return Workspace(directory)


def lines_of(workspace: Workspace) -> str:
    return "\n".join(f"{line.level} {line.message}" for line in parse_run_log(workspace.run_log.read_bytes()))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b"(" in Path(f"/proc/{pid}/stat").read_bytes() and b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()


SUBMIT = """
cp -r "{better}" "$OUTPUT_DIR/v1"
python -m kev.autorl submit output/v1
"""


def test_an_agent_that_ends_early_ends_its_run_with_a_verdict_and_a_row(tmp_path: Path) -> None:
    better = model(tmp_path / "better", worth(60))
    found = run(tmp_path, SUBMIT.format(better=better), "--timeout", "300")
    assert (found["verdict"], found["submissions"], found["exit_code"]) == ("gain", 1, 0)
    assert found["best_score"] == pytest.approx(60) and found["baseline"] == pytest.approx(20)
    assert isinstance(found["duration_s"], int) and found["duration_s"] < 200
    (row,) = read_results(tmp_path / "runs" / "results.csv").rows
    assert (row["agent"], row["success"], row["verdict"]) == ("made-up-agent", "True", "gain")
    workspace = workspace_of(tmp_path)
    assert '"score": 60' in workspace.agent_log.read_text()
    assert "INFO the agent ended with exit_code=0" in lines_of(workspace)
    assert "INFO journal: none" in lines_of(workspace)
    assert json.loads(workspace.run_meta.read_text())["end_time"] is not None
    assert json.loads(workspace.metrics.read_text())["score_trajectory"] == [pytest.approx(60)]


def test_an_agent_is_told_of_its_time_and_what_is_in_flight_at_the_bell_is_graded(tmp_path: Path) -> None:
    better = model(tmp_path / "better", worth(60))
    script = f"""
    cp -r "{better}" "$OUTPUT_DIR/v1"
    tail -n +1 -f "$NOTICES" 2>/dev/null & # not there yet; the agent may wait for it
    until [ -f "$NOTICES" ] && [ "$(wc -l < "$NOTICES")" -ge 2 ]; do read -t 0.05 <> <(:) || :; done
    python -c 'from kev.autorl.client import submit; submit("output/v1", wait=False)'
    while :; do read -t 1 <> <(:) || :; done
    """
    found = run(tmp_path, script, "--timeout", "12")
    assert (found["verdict"], found["submissions"], found["exit_code"]) == ("gain", 1, 128 + signal.SIGTERM)
    workspace = workspace_of(tmp_path)
    said = workspace.notices.read_text().splitlines()
    assert [line.partition(" ")[0] for line in said] == ["50%", "10%", "2%"]
    assert "WARNING timeout" in lines_of(workspace)


@LINUX
def test_nothing_of_an_agent_is_left_though_it_left_its_group_and_ignored_the_signal(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"""
    trap '' TERM
    loop='trap "" TERM; echo $$ >> {pids}; while :; do read -t 1 <> <(:) || :; done'
    setsid bash -c "$loop" &
    (setsid env -i "$BASH" -c "$loop" &) &
    bash -c "$loop"
    """
    found = run(tmp_path, script, "--timeout", "3", code=1)
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 3 and not [pid for pid in started if alive(pid)]
    assert (found["verdict"], found["submissions"]) == ("no submission", 0)
    assert found["exit_code"] == 128 + signal.SIGKILL


@LINUX
def test_what_an_agent_leaves_behind_when_it_ends_is_ended_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"""
    mkfifo wait
    setsid bash -c 'echo $$ > {pids}; echo > wait; while :; do read -t 1 <> <(:) || :; done' &
    read < wait
    """
    found = run(tmp_path, script, "--timeout", "300", code=1)
    assert found["exit_code"] == 0 and not alive(int(pids.read_text()))


@LINUX
def test_an_agent_that_kills_what_watches_it_is_found_by_its_mark(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"""
    setsid bash -c 'trap "" TERM; echo $$ > {pids}; while :; do read -t 1 <> <(:) || :; done' &
    until [ -s {pids} ]; do read -t 0.05 <> <(:) || :; done
    kill -9 $PPID
    while :; do read -t 1 <> <(:) || :; done
    """
    found = run(tmp_path, script, "--timeout", "300", code=1)
    assert found["exit_code"] == 128 + signal.SIGKILL and not alive(int(pids.read_text()))


def test_an_agent_that_crashes_has_its_exit_code_in_the_log_and_what_it_submitted_in_the_row(tmp_path: Path) -> None:
    better = model(tmp_path / "better", worth(60))
    found = run(tmp_path, SUBMIT.format(better=better) + "\necho 'ValueError: broken' >&2; exit 7", "--timeout", "300")
    assert (found["exit_code"], found["verdict"]) == (7, "gain")
    workspace = workspace_of(tmp_path)
    assert "ERROR the agent ended with exit_code=7" in lines_of(workspace)
    assert "ValueError: broken" in workspace.agent_log.read_text()


def test_an_agent_finds_its_paths_and_nothing_of_the_caller_but_what_it_asked_for(tmp_path: Path) -> None:
    found = run(
        tmp_path, "env > code/env; ls -a . .. > code/ls", "--timeout", "300",
        code=1, config="driver_model: made-up-1\nenvironment: [AGENT_KEY]\n",
        AGENT_KEY="its-own", SOMEBODYS_KEY="secret", HTTP_PROXY="http://localhost:1",
        KEV_AUTORL_TOKEN="sixteen-letters!",
    )  # fmt: skip
    workspace = workspace_of(tmp_path)
    seen = dict(line.partition("=")[::2] for line in (workspace.code / "env").read_text().splitlines())
    assert not seen.keys() & {"SOMEBODYS_KEY", "HTTP_PROXY", "KEV_AUTORL_TOKEN"}
    assert seen["AGENT_KEY"] == "its-own" and seen["GRADING_SERVER_URL"].startswith("http://127.0.0.1:")
    assert seen["WORKSPACE"] == str(workspace.directory) and Path(seen["MODEL_PATH"]).is_dir()
    assert (seen["TASK"], seen["BASE_MODEL"]) == ("made-up", "tiny")
    assert ".grader" not in (workspace.code / "ls").read_text()
    (row,) = read_results(tmp_path / "runs" / "results.csv").rows
    assert (row["driver_model"], row["success"]) == ("made-up-1", "False") and found["verdict"] == "no submission"


@LINUX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_an_agent_outlives_a_runner_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    fifo = tmp_path / "began"
    os.mkfifo(fifo)
    script = f"""
    setsid bash -c 'echo $$ > {fifo}; while :; do read -t 1 <> <(:) || :; done' &
    wait
    """
    agent = write_agent(tmp_path / "agents", script)
    started = subprocess.Popen(command(tmp_path, agent, "--timeout", "300"), stdout=subprocess.PIPE, text=True)
    pid = int(fifo.read_text())
    ended = os.pidfd_open(pid)
    started.send_signal(number)
    out, _ = started.communicate(timeout=60)
    assert select.select([ended], [], [], 60)[0], "it still runs"
    os.close(ended)
    if number == signal.SIGTERM:
        (row,) = read_results(tmp_path / "runs" / "results.csv").rows
        assert started.returncode == 130 and (row["success"], row["verdict"]) == ("False", "interrupted")
        assert json.loads(out)["why"] == "interrupted"


def test_a_copy_of_the_base_ends_without_an_improvement(tmp_path: Path) -> None:
    found = run(tmp_path, 'cp -rL "$MODEL_PATH" "$OUTPUT_DIR/mine"; python -m kev.autorl submit output/mine', code=0)
    assert (found["verdict"], found["improvement"]) == ("no change", 0.0)


def test_the_agents_that_are_shipped_open_by_their_names() -> None:
    assert {"copy_model", "example_grpo", "example_sft"} <= set(shipped_agents())
    assert all(open_agent(name).config.description for name in shipped_agents())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("a: [", "line 1: not YAML"),
        ("- 1", "holds a list where an object belongs"),
        ("environment: ['A=B']", "not the name of a variable"),
        ("environment: 3", "environment"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused_by_its_key(tmp_path: Path, config: str, words: str) -> None:
    with pytest.raises(DamagedFile, match=words):
        open_agent(str(write_agent(tmp_path, "", config)))


def test_an_agent_that_is_none_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="did you mean"):
        open_agent("example_sftt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match=r"start\.sh"):
        open_agent(str(tmp_path / "empty"))


@LINUX
def test_a_tree_is_found_by_ancestry_and_by_its_mark() -> None:
    script = "setsid bash -c 'echo $$; while :; do read -t 1 <> <(:); done' & wait"
    with subprocess.Popen(
        ["bash", "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ, "A_MARK": "of-ours"}
    ) as started:
        assert started.stdout is not None
        below = int(started.stdout.readline())
        assert below in descendants(os.getpid()) and below in descendants(started.pid)
        assert {started.pid, below} <= marked("A_MARK", "of-ours") and not marked("A_MARK", "of-others")
        os.kill(below, signal.SIGKILL)
        started.kill()
