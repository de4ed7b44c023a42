"""A provider that is away, busy or unsure: the watch waits, asks again, and ends nothing without evidence."""

from typing import Any

from fake_compute import Plan
from round_lab import RoundLab
from watched_night import DELTA, FULL, Night, no_trial_fails

from kev import files
from kev.compute.errors import RemoteError
from kev.compute.protocol import Phase


async def test_a_network_that_is_away_for_a_day_fails_nothing_and_relaunches_nothing(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    before = list(round_lab.compute.spawned)

    async def away(name: str) -> str:
        return "unavailable"

    round_lab.compute.point = away
    await night.watch(passes=30, interval_s=3600)
    assert round_lab.clock.time > 80_000
    assert [unit.settled for unit in (night.unit(FULL), night.unit(DELTA))] == [False, False]
    assert files.read_json(round_lab.runs / "r201-full.watch.json")["calls"]["trial-0"]["status"] == "running"
    assert files.read_json(round_lab.runs / "night-watcher.json")["unreachable_since"] is not None
    round_lab.compute.point = None
    assert await night.watch()
    assert [name for name in night.spawned("trial/") if name not in before] == []


async def test_being_asked_to_slow_down_is_waited_for_as_told_and_uses_up_no_failure(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()

    async def slow(name: str) -> str:
        return "throttled" if name == "poll" else "ok"

    round_lab.compute.point = slow
    await night.watch(passes=200, interval_s=1)
    state = files.read_json(round_lab.runs / "r201-full.watch.json")["calls"]["trial-0"]
    assert (state["status"], state["transient"]) == ("running", 0)
    assert files.read_json(round_lab.runs / "night-watcher.json")["throttled_since"] is not None
    assert round_lab.clock.time >= 199 * 5
    said = [line for line in round_lab.said if "cannot be asked" in line]
    assert len(said) == len(set(said))


async def test_a_lost_reply_is_adopted_by_the_nonce_in_the_lease(round_lab: RoundLab) -> None:
    night = Night(round_lab)

    async def lose(name: str) -> str:
        return "lost" if name == "spawned" and len(round_lab.compute.spawned) == 2 else "ok"

    round_lab.compute.point = lose
    await night.launch()
    round_lab.compute.point = None
    assert night.unit(FULL).live.call is None
    assert await night.watch()
    assert night.unit(FULL).counted[0].call == "fc-0001"
    assert len(night.spawned(FULL)) == 1
    assert any("its lease has the nonce" in line for line in round_lab.said)


async def test_an_intent_with_nothing_alive_is_a_ghost_and_counts_as_an_attempt(round_lab: RoundLab) -> None:
    night = Night(round_lab)

    spawns = 0

    async def first(name: str) -> str:
        nonlocal spawns
        spawns += name == "spawn"
        return "unavailable" if name == "spawn" and spawns == 2 else "ok"  # the first asks for the sources

    round_lab.compute.point = first
    await night.launch()
    began = round_lab.clock.time
    assert await night.watch()
    attempts = night.unit(FULL).counted
    assert [attempt.outcome for attempt in attempts] == ["abandoned", "succeeded"]
    assert attempts[1].at - attempts[0].at >= 900
    assert round_lab.clock.time > began
    assert "ghost" in round_lab.read_events()


async def test_a_result_that_expired_counts_only_if_it_is_on_the_volume(round_lab: RoundLab) -> None:
    def plan(function: str, payload: dict[str, Any]) -> Plan:
        return Plan(seconds=60, ending=Phase.EXPIRED) if payload.get("study") else no_trial_fails(function, payload)

    night = Night(round_lab, plan)
    await night.launch()
    round_lab.compute.volume["r201-delta/00-trial-0/result.json"] = b"{}"
    await night.watch(passes=10)
    assert night.unit(DELTA).outcome == "done"
    assert night.unit(FULL).outcome is None


async def test_a_call_that_the_provider_does_not_know_is_not_failed_until_it_cannot_be_running(
    round_lab: RoundLab,
) -> None:
    night = Night(round_lab)
    await night.launch()
    gone = night.unit(DELTA).live.call
    round_lab.compute.missing.add(gone)
    await night.watch(passes=30, interval_s=600)
    assert not night.unit(DELTA).settled
    assert any("is this its workspace" in line for line in round_lab.said)
    assert await night.watch(interval_s=600)
    assert night.unit(DELTA).counted[0].outcome == "missing"


def test_every_failure_to_ask_is_a_remote_error() -> None:
    # The watch leaves state alone on these and on nothing else, so no other class may stand for "could not ask".
    from kev.compute import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, RemoteError) for kind in kinds if kind.__name__ != "KevError")
