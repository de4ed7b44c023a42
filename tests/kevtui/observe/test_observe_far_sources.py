"""Files that are read ahead, many at a time, make the same Snapshots as files that are read when they are asked for."""

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkout_files import step

from kev.errors import DamagedFile
from kevtui.observe import far_lister, far_sources
from kevtui.observe.far_lister import ask
from kevtui.observe.far_sources import FarSources, TailAhead
from kevtui.observe.log_tail import LogTail
from kevtui.observe.observer import Observer, leases_of
from kevtui.observe.sources import Sources
from kevtui.observe.target import resolve


def observing(checkout: Any, clock: Any, kind: type[Sources]) -> Observer:
    target = resolve(".", root=checkout.root, cwd=checkout.root)
    return Observer(target, clock=clock, poll=True, sources=kind(target, leases_of(checkout.root)))


def test_every_pass_makes_the_snapshot_that_reading_in_order_makes(checkout: Any, clock: Any) -> None:
    trial = checkout.runs / "r9-a" / "00-trial-0"

    def grow(number: int) -> None:
        checkout.log("r9-a", step(number, 100))
        with (trial / "metrics.jsonl").open("a") as stream:
            stream.write(json.dumps({"step": number, "steps": 100, "loss": 1.0, "monotonic": 8.0 * number}) + "\n")

    def lease(heartbeat: float) -> None:
        checkout.lease("r9-a", heartbeat=clock.now().timestamp() - heartbeat)

    def again() -> None:
        shutil.rmtree(trial)
        checkout.log("r9-a", step(3, 100))

    changes: list[Callable[[], object]] = [
        lambda: (checkout.spawn("r9-a", 2), checkout.spawn("r9-b")),
        lambda: checkout.log("r9-a", step(1, 100)),
        lambda: checkout.log("r9-b", step(1, 100)),
        lambda: lease(30.0),
        lambda: None,
        *[lambda number=number: grow(number) for number in range(2, 8)],
        lambda: checkout.write("runs/r9-a/00-trial-0/train.log", step(5, 100).encode() + b"\n"),
        lambda: checkout.write("runs/r9-a/01-trial-1/result.json", b"{torn"),
        lambda: checkout.write("runs/r9-a/01-trial-1/result.json", {}),
        lambda: checkout.write("runs/r9-b/00-trial-0/failed.json", {"error": "out of memory"}),
        lambda: lease(10.0),
        lambda: checkout.write("volumes/kev-leases/r9-a/00-trial-0/attempt.json", b""),
        again,
        lambda: shutil.rmtree(checkout.runs / "r9-b"),
    ]
    plain, far = observing(checkout, clock, Sources), observing(checkout, clock, FarSources)
    for change in changes:
        change()
        clock.pass_(20)
        assert far.observe() == plain.observe()
    assert far.observe().trials[0].step == 3


def test_the_files_of_trials_are_all_read_ahead(checkout: Any, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.spawn("r9-a", 6)
    for number in range(6):
        checkout.log("r9-a", step(1, 100), trial=f"{number:02d}-trial-{number}")
        checkout.write(f"runs/r9-a/{number:02d}-trial-{number}/result.json", {})
        checkout.lease("r9-a", heartbeat=clock.now().timestamp(), trial=f"{number:02d}-trial-{number}")
    asking = threading.Event()
    alone: list[str] = []
    opened: list[str] = []
    open_ = os.open

    def asked(questions: Any) -> list[Any]:
        asking.set()
        try:
            return ask(questions)
        finally:
            asking.clear()

    def noticed(path: Any, *more: Any, **named: Any) -> int:
        (opened if asking.is_set() else alone).append(str(path))
        return open_(path, *more, **named)

    monkeypatch.setattr(far_lister, "ask", asked)
    monkeypatch.setattr(far_sources, "ask", asked)
    monkeypatch.setattr(os, "open", noticed)
    snapshot = observing(checkout, clock, FarSources).observe()
    assert len(snapshot.trials) == len(snapshot.leases) == 6
    of_trials = [path for path in alone if "00-trial" in path or "05-trial" in path]
    assert of_trials == [] and len(opened) == len(set(opened)) == 18


def test_lines_that_were_read_ahead_and_not_taken_are_followed_by_what_came_since(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("a\n")
    tail = TailAhead(LogTail(log))
    tail.ask()
    log.write_text("a\nb\n")
    tail.ask()
    first = tail.read()
    assert (first.lines, first.more) == ((b"a",), True)
    second = tail.read()
    assert (second.lines, second.more) == ((b"b",), False)
    tail.ask()
    assert tail.read().lines == () and not tail.read().more


def test_a_failure_that_was_met_ahead_is_raised_where_the_file_is_read(tmp_path: Path) -> None:
    tail = TailAhead(LogTail(tmp_path))
    tail.ask()
    with pytest.raises(DamagedFile):
        tail.read()
