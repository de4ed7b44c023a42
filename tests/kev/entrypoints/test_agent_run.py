"""A run of the bench, as far as the launcher's machine decides."""

from dataclasses import replace
from typing import Any

import pytest

from kev.entrypoints.agent_run import AgentRequest, agent_order, check_agent, run_agent_there
from kev.entrypoints.by_hand import open_gate, provenance_of
from kev.errors import KevError, Refused

from .conftest import Desk

WANTED = AgentRequest("example_sft", "arithmetic", "/hf/bases/tiny", "first", 600, 20, "H100")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "bases/tiny"}, "--model"),
        ({"agent": "exmaple_sft"}, "--agent"),
        ({"name": "../up"}, "--name"),
        ({"seconds": 0}, "above 0"),
        ({"submissions": 0}, "above 0"),
        ({"timeout": 600}, "above --seconds"),
        ({"seconds": 86_000}, "at most 86400"),
        ({"gpu": "H1000"}, "H1000"),
    ],
)
async def test_a_run_that_cannot_be_meant_is_refused_before_anything_is_asked(
    desk: Desk, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(KevError, match=words):
        await run_agent_there(desk.place, replace(WANTED, **changes))
    assert desk.compute.spawned == []


def test_a_folder_of_a_volume_may_be_an_agent() -> None:
    check_agent(replace(WANTED, agent="/hf/agents/mine", model="/runs/r1/00-trial-0/base"))


async def test_a_run_is_admitted_to_the_end_of_its_container_and_is_asked_for_once(desk: Desk) -> None:
    def arrive(payload: dict[str, Any]) -> None:
        desk.put(f"autorl/{payload['name']}/results.csv", {})

    desk.compute.on_spawn = arrive
    assert await run_agent_there(desk.place, WANTED) == 1, "the stand-in answers no verdict"
    [unit] = desk.units().values()
    assert (unit.id, unit.order.kind, unit.order.timeout) == ("agent/first", "agent", 600 + 3600)
    assert (desk.root / "runs/autorl/first/results.csv").exists()
    await run_agent_there(desk.place, WANTED)
    assert len(desk.compute.spawned) == 1
    with pytest.raises(Refused, match="a name is used once"):
        await run_agent_there(desk.place, replace(WANTED, task="decisions"))
    desk.put("autorl/taken/results.csv", {})
    with pytest.raises(Refused, match="use another --name"):
        await run_agent_there(desk.place, replace(WANTED, name="taken"))


async def test_what_was_put_on_record_and_never_started_gives_way_to_what_is_asked_now(desk: Desk) -> None:
    gate = open_gate(desk.place)
    await gate.reserve("first", [agent_order(replace(WANTED, seconds=900), provenance_of(desk.place, gate))])
    await run_agent_there(desk.place, WANTED)
    [unit] = desk.units().values()
    assert (unit.order.payload["seconds"], unit.order.timeout, len(unit.counted)) == (600, 600 + 3600, 1)
