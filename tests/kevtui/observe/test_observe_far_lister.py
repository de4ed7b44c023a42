"""Over a link where every question is a round trip, a sweep finds the same and waits for few of them."""

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from kevtui.observe import far_lister, mounts
from kevtui.observe.far_lister import FarLister, ask
from kevtui.observe.lister import RELIST_EVERY, Lister, want_run_file, want_run_folder
from kevtui.observe.observer import POLL_S, RESTS, Observer
from kevtui.observe.target import resolve

STUDIES, TRIALS = 5, 8
LEVELS = 4
"""runs/, studies, trials, and what lies in a trial."""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for study in range(STUDIES):
        for trial in range(TRIALS):
            make_trial(tmp_path / "runs" / f"study-{study}" / f"{trial:02d}-trial-{trial}")
        (tmp_path / "runs" / f"study-{study}.spawn.json").write_text("{}")
    (tmp_path / "runs" / "study-0" / "00-trial-0" / "result.json").write_text("{}")
    rest(tmp_path)
    return tmp_path / "runs"


def make_trial(folder: Path) -> None:
    (folder / "snapshots").mkdir(parents=True)
    for name in ("train.log", "metrics.jsonl"):
        (folder / name).write_text("x\n")


def rest(root: Path) -> None:
    """Every folder looks as if it had not moved for long."""
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        os.utime(folder, (1e9, 1e9))


def of(kind: type[Lister], runs: Path) -> Lister:
    return kind({runs: (want_run_file, want_run_folder)})


def known(lister: Lister) -> dict[str, Any]:
    folders = {path: (folder.parts, folder.files, folder.folders) for path, folder in lister.folders.items()}
    return {"folders": folders, "unreadable": lister.unreadable, "changed": lister.take_changed()}


def test_it_finds_at_every_sweep_what_the_plain_one_finds(runs: Path) -> None:
    plain, far = of(Lister, runs), of(FarLister, runs)
    changes = [
        lambda: None,
        lambda: (runs / "study-1/01-trial-1/train.log").write_text("longer\n"),
        lambda: make_trial(runs / "study-9/00-trial-0"),
        lambda: shutil.rmtree(runs / "study-2"),
        lambda: (runs / "study-3/00-trial-0/metrics.jsonl").unlink(),
        lambda: (runs / "study-0/00-trial-0/train.log").write_text("after its end\n"),
        *[lambda: None] * RELIST_EVERY,
        lambda: shutil.move(runs, runs.with_name("away")),
        lambda: shutil.move(runs.with_name("away"), runs),
    ]
    for change in changes:
        change()
        assert far.sweep() == plain.sweep()
        assert known(far) == known(plain)


def test_a_sweep_waits_for_a_few_round_trips_a_level_and_for_none_besides(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lister = of(FarLister, runs)
    rounds: list[int] = []
    alone: list[str] = []
    stat, scandir = os.stat, os.scandir
    asking = threading.Event()

    def ask_counted(questions: Any) -> list[Any]:
        rounds.append(len(questions))
        asking.set()
        try:
            return ask(questions)
        finally:
            asking.clear()

    def noticed(call: Any) -> Any:
        def asked(path: Any, *more: Any, **named: Any) -> Any:
            if not asking.is_set():
                alone.append(str(path))
            return call(path, *more, **named)

        return asked

    monkeypatch.setattr(far_lister, "ask", ask_counted)
    monkeypatch.setattr(os, "stat", noticed(stat))
    monkeypatch.setattr(os, "scandir", noticed(scandir))
    for _ in range(RELIST_EVERY + 1):
        rounds.clear()
        lister.sweep()
        assert len([number for number in rounds if number]) <= 3 * LEVELS
        assert sum(rounds) > STUDIES * TRIALS
    assert [path for path in alone if path.startswith(str(runs))] == []


def test_questions_are_under_way_together_and_an_error_is_an_answer() -> None:
    together = threading.Barrier(4)

    def question(number: int) -> int:
        together.wait(30)
        if number % 2:
            raise OSError(number, "odd")
        return number

    answers = ask([lambda number=number: question(number) for number in range(16)])
    assert [answer.errno if isinstance(answer, OSError) else answer for answer in answers] == list(range(16))
    assert ask([]) == []


def test_a_checkout_on_a_shared_volume_is_asked_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    target = resolve(".", root=tmp_path, cwd=tmp_path)
    assert type(Observer(target)._sources.lister) is Lister
    monkeypatch.setattr(mounts, "read_table", lambda: f"host:/x {tmp_path} nfs4 rw 0 0\n")
    assert type(Observer(target)._sources.lister) is FarLister


def test_a_slow_volume_is_left_alone_for_longer_than_it_took(tmp_path: Path) -> None:
    log = tmp_path / "runs" / "study-0" / "00-trial-0" / "train.log"
    make_trial(log.parent)
    log.write_text("ep0 step 10/100 loss 2.000 kl 0.000\n")
    observer = Observer(resolve(".", root=tmp_path, cwd=tmp_path), poll=True)
    assert observer.observe().trials[0].step == 10
    log.write_text("ep0 step 20/100 loss 2.000 kl 0.000\n")
    observer._sweeps_took_s = (0.01, 3600.0)
    assert observer._interval_s() == POLL_S, "it hung once"
    observer._sweeps_took_s = (3600.0, 5.0)
    assert observer._interval_s() == RESTS * 5.0
    assert observer.observe().trials[0].step == 10, "only ages are taken anew"
    observer._sweeps_took_s = (0.01, 0.01)
    assert observer.observe().trials[0].step == 20
