"""A record that cannot be believed starts nothing, and the rest is watched on."""

import json

import pytest
from round_lab import RoundLab
from watched_night import DELTA, FULL, Night, times_out

from kev import files


@pytest.mark.parametrize("whole", [b"", b'{"name": "r31-9b", "calls": {"trial-0"'])
async def test_a_spawn_record_that_is_damaged_starts_nothing_and_the_rest_is_watched_on(
    round_lab: RoundLab, whole: bytes
) -> None:
    night = Night(round_lab)
    await night.launch()
    record = round_lab.runs / "r31-9b.spawn.json"
    record.write_bytes(whole)
    copy = record.with_name(".r31-9b.spawn.json.q7.tmp")
    copy.write_text(json.dumps({"name": "r31-9b", "calls": {}, "gpu": "H200", "timeout": 60}))
    assert await night.watch()
    assert night.spawned("read/") == []
    assert [night.unit(name).outcome for name in (FULL, DELTA)] == ["done", "done"]
    assert record.read_bytes() == whole
    assert round_lab.read_events().count("damaged") == 1
    told = [line for line in round_lab.said if "r31-9b.spawn.json" in line and line.startswith("!!!")]
    assert len(told) == 1
    assert f"a complete copy is in {copy}" in told[0]
    copy.rename(record)
    (round_lab.runs / "r31-9b.watch.json").write_text('{"calls": {}}')
    assert await night.watch()
    assert len(night.spawned("read/")) == 9


async def test_a_trial_that_is_due_is_not_continued_on_a_damaged_record(round_lab: RoundLab) -> None:
    night = Night(round_lab, times_out(90_000, ends_lease=True))
    await night.launch()
    (round_lab.runs / "r31-9b.spawn.json").write_bytes(b"")
    assert await night.watch()
    assert (night.unit(FULL).outcome, len(night.unit(FULL).counted)) == ("blocked", 1)
    assert "r31-9b.spawn.json" in night.unit(FULL).text


async def test_a_ledger_that_is_emptied_is_an_incident_and_is_watched_from_again_once_it_is_put_back(
    round_lab: RoundLab,
) -> None:
    night = Night(round_lab)
    await night.launch()
    ledger = round_lab.runs / "ledger.jsonl"
    asked = 0

    async def spoil(name: str) -> str:
        nonlocal asked
        asked += name == "poll"
        if asked == 5 and name == "poll":
            spoilt.append(ledger.read_bytes())
            began.extend(round_lab.compute.spawned)
            ledger.write_bytes(b"")
        return "ok"

    spoilt: list[bytes] = []
    began: list[str] = []
    round_lab.compute.point = spoil
    await night.watch(passes=40)
    assert ledger.read_bytes() == b""
    assert round_lab.compute.spawned == began
    assert round_lab.read_events().count("damaged") == 1
    life = files.read_json(round_lab.runs / "night-watcher.json")
    assert (life["passes"], life["state"]) == (40, "paused")
    ledger.write_bytes(spoilt[0])
    assert await night.watch()
    assert len(night.spawned("read/")) == 9
