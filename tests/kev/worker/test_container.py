"""What a container gives to its work: threads, volumes, sources; and commits while training runs."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kev.errors import Refused, UsageError
from kev.evaluators import describe, differing
from kev.git import commit_of
from kev.records.resume import ResumePoint
from kev.records.snapshot import TrainingSnapshot
from kev.worker.committer import Committer
from kev.worker.container import THREAD_VARIABLES, MountedVolume, limit_threads, variable_of
from kev.worker.sources import check_sources, digest, source_hashes
from kev.worker.training_files import ResumePoints, Snapshots, train_log

from .conftest import Bench, DirectoryVolume

REPOSITORY = Path(__file__).parents[3]


def test_numeric_libraries_get_the_cores_of_the_container_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert limit_threads(4) == 4
    assert {os.environ[name] for name in THREAD_VARIABLES} == {"4"}
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert limit_threads(24) == 2


def test_what_the_environment_says_of_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    limit_threads(4)
    assert os.environ["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    "module", ["kev.worker.container", "kev.worker.orders", "kev.worker.sources", "kev.entrypoints.commands"]
)
def test_nothing_numeric_is_loaded_by_launchers_nor_before_the_threads_are_set(module: str) -> None:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert not {"numpy", "modal", "torch"} & set(done.stdout.split())


def test_a_volume_is_where_the_environment_says_and_at_its_mount_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    volume = MountedVolume("kev-runs", "/runs", None)
    monkeypatch.delenv("KEV_VOLUME_KEV_RUNS", raising=False)
    assert volume.path == Path("/runs")
    monkeypatch.setenv("KEV_VOLUME_KEV_RUNS", "/elsewhere/runs")
    assert volume.path == Path("/elsewhere/runs")


def test_the_emulator_names_volumes_in_the_same_variables() -> None:
    pytest.importorskip("modal", reason="the emulator needs it")
    from kev.emulator import volume_views

    for name in ("kev-runs", "kev-hf-cache", "kev-leases", "x.y z"):
        assert variable_of(name) == volume_views.variable_of(name)


@pytest.mark.parametrize("remote", ["/runs/", "", "../x", "/runs/a/../../b"])
def test_a_path_outside_the_volume_is_refused(bench: Bench, remote: str) -> None:
    with pytest.raises(UsageError, match="no path on the runs volume"):
        bench.container.place(remote)


def test_a_path_is_found_with_its_mount_and_without(bench: Bench) -> None:
    assert bench.container.place("/runs/a/b") == bench.container.place("a/b") == bench.runs.path / "a" / "b"


def test_the_digest_tells_any_change_of_any_source(tmp_path: Path) -> None:
    (tmp_path / "kev" / "deep").mkdir(parents=True)
    (tmp_path / "kev" / "deep" / "a.py").write_text("A = 1\n")
    (tmp_path / "kev" / "notes.txt").write_text("not a source\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    before = source_hashes(tmp_path)
    assert set(before) == {"kev/deep/a.py", "pyproject.toml"}
    (tmp_path / "kev" / "notes.txt").write_text("changed\n")
    assert digest(source_hashes(tmp_path)) == digest(before)
    (tmp_path / "kev" / "deep" / "a.py").write_text("A = 2\n")
    (tmp_path / "uv.lock").write_text("\n")
    after = source_hashes(tmp_path)
    assert digest(after) != digest(before)
    assert differing(before, after) == ["kev/deep/a.py", "uv.lock"]
    assert describe(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_an_order_of_another_checkout_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="deploy again"):
        check_sources(bench.order(sources="0" * 64), bench.container)


def test_no_commit_is_known_where_there_is_no_repository(tmp_path: Path) -> None:
    assert commit_of(tmp_path / "nowhere") is None


def write_point(directory: Path, step: int) -> None:
    point = ResumePoint(dir=f"step-{step:07d}", step=step, world=1, args={})
    ResumePoints(directory / "checkpoint" / "resume").save(point, {0: {"step": step}})


def wait_for(volume: DirectoryVolume, commits: int) -> None:
    waiting = threading.Event()
    for _ in range(2000):
        if volume.commits >= commits:
            return
        waiting.wait(0.005)
    pytest.fail(f"{volume.commits} commits")


def test_a_resume_point_and_a_snapshot_are_committed_and_told_while_training_runs(bench: Bench) -> None:
    trial, lines = bench.trial, bench.lines
    committer = Committer(bench.runs, trial, lines.append, poll_seconds=0.005, log_seconds=3600)
    committer.start()
    write_point(trial, 510)
    wait_for(bench.runs, 1)
    assert (bench.runs.committed / "night/00-trial-0/checkpoint/resume/latest.json").exists()
    Snapshots(trial / "snapshots").save(TrainingSnapshot(step=600, steps=1140), {"weights": b"w"})
    wait_for(bench.runs, 2)
    committer.finish()
    assert lines[0].startswith("[volume] committed resume point 510 (step-0000510) to the runs volume in ")
    assert any(line.startswith("[volume] committed snapshot step-0000600") for line in lines)


def test_a_commit_that_fails_while_training_runs_is_tried_again(bench: Bench) -> None:
    committer = Committer(bench.runs, bench.trial, bench.lines.append, poll_seconds=0.005, log_seconds=3600)
    bench.runs.failures = [OSError("busy")]
    committer.start()
    write_point(bench.trial, 20)
    wait_for(bench.runs, 1)
    committer.finish()
    assert any(line.startswith("!!! [volume] commit failed, trying again: OSError: busy") for line in bench.lines)
    assert any("committed resume point 20" in line for line in bench.lines)


def test_the_log_is_committed_even_where_nothing_else_is_new(bench: Bench) -> None:
    committer = Committer(bench.runs, bench.trial, bench.lines.append, poll_seconds=0.005, log_seconds=0.005)
    committer.start()
    wait_for(bench.runs, 2)
    committer.finish()
    assert bench.lines == []


def test_the_log_has_every_line_and_the_operator_sees_the_important_ones(tmp_path: Path) -> None:
    shown: list[str] = []
    say = train_log(tmp_path / "train.log", shown.append)
    lines = ["device=cuda", "58 training requests", "ep0 step 10/20", "!!! missed", "x Error y", "delta: warm start",
             "half a pair \ud800", "saved /runs/x"]  # fmt: skip
    for line in lines:
        say(line)
    assert shown == ["device=cuda", "ep0 step 10/20", "!!! missed", "x Error y", "saved /runs/x"]
    assert (tmp_path / "train.log").read_bytes().count(b"\n") == len(lines)
