"""Ranks on this machine that start, fail and stop together. What they learn is held where they learn it."""

import os
from pathlib import Path

import pytest

from kev.errors import KevError, Refused
from kev.train.launch import rank_environment, train_on_ranks


def arguments(plan: Path) -> list[str]:
    return ["--plan", str(plan), "--suite", "absent", "--out", str(plan.parent / "out"), "--device", "cpu"]


def processes_of(plan: Path) -> list[int]:
    """Every process that was started with `plan`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(plan).encode() in words:
            found.append(int(path.parent.name))
    return found


def test_what_a_rank_says_as_it_fails_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(KevError, match=r"rank [01]: .*absent\.json: .*no such file"):
        train_on_ranks(arguments(tmp_path / "absent.json"), 2, tmp_path, lambda: None)


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_no_rank_is_left_where_the_training_may_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, gate = tmp_path / "plan", tmp_path / "gate"
    os.mkfifo(gate)  # every rank waits here for ever, before it can look at its plan
    (tmp_path / "sitecustomize.py").write_text(f"open({str(gate)!r}).read()\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    seen: list[int] = []

    def check() -> None:
        seen.append(len(processes_of(plan)))
        if seen[-1] == 2:
            raise Refused("held by attempt 2")

    with pytest.raises(Refused, match="attempt 2"):
        train_on_ranks(arguments(plan), 2, tmp_path, check)
    assert seen[-1] == 2 and processes_of(plan) == []


def test_ranks_share_the_threads_and_meet_on_loopback(tmp_path: Path) -> None:
    environment = rank_environment(1, 4, tmp_path, {"OMP_NUM_THREADS": "16", "PYTHONPATH": "/own"})
    assert (environment["RANK"], environment["WORLD_SIZE"], environment["OMP_NUM_THREADS"]) == ("1", "4", "4")
    assert environment["GLOO_SOCKET_IFNAME"].startswith("lo") and environment["PYTHONPATH"].endswith(":/own")
