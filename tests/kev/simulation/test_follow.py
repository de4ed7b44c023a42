"""While a trial runs, its log, its metrics and its lease come home, whole lines at a time and without deciding."""

from pathlib import Path

import pytest
from fake_compute import Plan
from lab import order
from round_lab import RoundLab

from kev.compute.errors import Unavailable
from kev.errors import NotFound
from kev.ledger.units import Unit
from kev.rounds.launch import launch
from kev.rounds.pull import pull_unit
from kev.rounds.watching.follow import MOST_BYTES
from kev.rounds.watching.passes import Watch

REMOTE = "r201-full/00-trial-0"


async def running(lab: RoundLab) -> tuple[Watch, Path]:
    """A watch over a round whose trials run for an hour, and where the full-weight trial comes home to."""
    lab.compute.plan = lambda *_: Plan(seconds=3600)
    await launch(lab.engine(), lab.loaded, stagger_s=0)
    return Watch(lab.engine(), lab.loaded, 1.0), lab.runs / REMOTE


async def test_what_has_grown_is_appended_in_whole_lines(round_lab: RoundLab) -> None:
    watch, home = await running(round_lab)
    volume = round_lab.compute.volume
    volume[f"{REMOTE}/train.log"] = b"ep0 step 10/40 loss 2.0\nep0 ste"
    volume[f"{REMOTE}/checkpoint/model.safetensors"] = b"weights"
    await watch.run()
    assert (home / "train.log").read_bytes() == b"ep0 step 10/40 loss 2.0\n"
    before = (home / "train.log").stat().st_ino
    volume[f"{REMOTE}/train.log"] = b"ep0 step 10/40 loss 2.0\nep0 step 20/40 loss 1.0\n"
    volume[f"{REMOTE}/metrics.jsonl"] = b'{"step": 20}\n'
    await watch.run()
    assert (home / "train.log").read_bytes() == volume[f"{REMOTE}/train.log"]
    assert (home / "train.log").stat().st_ino == before, "a reader that follows it need not begin again"
    assert sorted(path.name for path in home.iterdir()) == ["metrics.jsonl", "train.log"]


async def test_a_log_that_became_another_replaces_the_copy_and_a_huge_one_is_left_for_the_pull(
    round_lab: RoundLab,
) -> None:
    watch, home = await running(round_lab)
    volume = round_lab.compute.volume
    volume[f"{REMOTE}/train.log"] = b"first\n"
    await watch.run()
    volume[f"{REMOTE}/train.log"] = b"another one\n"
    volume[f"{REMOTE}/metrics.jsonl"] = b"x" * MOST_BYTES + b"\n"
    await watch.run()
    assert (home / "train.log").read_bytes() == b"another one\n"
    assert not (home / "metrics.jsonl").exists()


async def test_the_lease_comes_home_and_once_more_when_its_holder_has_let_go(round_lab: RoundLab) -> None:
    watch, _ = await running(round_lab)
    here = round_lab.root / "volumes" / "kev-leases" / REMOTE / "attempt.json"
    round_lab.clock.time += 60
    await watch.run()
    assert b'"ended":null' in here.read_bytes().replace(b" ", b"")
    round_lab.clock.time += 3600
    await watch.run()
    assert b'"ended":null' not in here.read_bytes().replace(b" ", b"")


async def test_a_provider_that_does_not_show_its_volumes_changes_nothing_else(round_lab: RoundLab) -> None:
    watch, home = await running(round_lab)

    async def away(*_: object, **__: object) -> bytes:
        raise Unavailable("away")

    round_lab.compute.read = round_lab.compute.listdir = away  # type: ignore[assignment,method-assign]
    await watch.run()
    assert not home.exists() and not watch.silent


async def test_a_pull_of_what_has_no_place_on_the_volume_brings_nothing_home(round_lab: RoundLab) -> None:
    round_lab.compute.volume["another/report.json"] = b"{}"
    mirror = Unit("mirror/a/b/1", order(kind="mirror", name="mirror/a/b/1", remote="", local=""))
    with pytest.raises(NotFound, match="mirror/a/b/1: writes nothing"):
        await pull_unit(round_lab.engine(), mirror)
    assert not (round_lab.root / "another").exists()
