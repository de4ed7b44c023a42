"""Dict through the real client: the compare-and-set that leases need."""

import asyncio

import modal
import pytest

from .conftest import Begin, Night


def store_of(night: Night) -> modal.Dict:
    return modal.Dict.from_name("leases", create_if_missing=True, client=night.client)


async def test_of_many_racing_claims_exactly_one_wins(night: Night) -> None:
    store = store_of(night)
    won = await asyncio.gather(*(store.put.aio("lease", who, skip_if_exists=True) for who in range(40)))

    assert won.count(True) == 1
    assert await store.get.aio("lease") == won.index(True)


async def test_containers_and_clients_race_for_the_same_keys(night: Night) -> None:
    shared = modal.Dict.from_name("night-claims", create_if_missing=True, client=night.client)
    theirs, ours = await asyncio.gather(
        night.call("claim", "trial-3", "container"), shared.put.aio("trial-3", "client", skip_if_exists=True)
    )

    assert sorted([theirs, ours]) == [False, True]
    assert await shared.get.aio("trial-3") == ("container" if theirs else "client")


async def test_items_can_be_replaced_taken_counted_and_listed(night: Night) -> None:
    store = store_of(night)
    await store.put.aio("a", {"nonce": 1})
    await store.put.aio("a", {"nonce": 2})
    await store.update.aio({"b": 1, "c": 2})

    assert await store.get.aio("a") == {"nonce": 2}
    assert await store.len.aio() == 3
    assert sorted([key async for key in store.keys.aio()]) == ["a", "b", "c"]
    assert sorted([value async for value in store.values.aio()], key=str) == [1, 2, {"nonce": 2}]
    assert await store.pop.aio("a") == {"nonce": 2}
    assert await store.contains.aio("a") is False
    with pytest.raises(KeyError):
        await store.pop.aio("a")
    await store.clear.aio()
    assert [item async for item in store.items.aio()] == []


async def test_a_claim_that_was_taken_can_be_made_again_after_it_was_given_back(night: Night) -> None:
    store = store_of(night)
    assert await store.put.aio("lease", 1, skip_if_exists=True)
    assert not await store.put.aio("lease", 2, skip_if_exists=True)
    await store.pop.aio("lease")
    assert await store.put.aio("lease", 2, skip_if_exists=True)


async def test_a_dict_that_nobody_made_is_not_found(night: Night) -> None:
    with pytest.raises(modal.exception.NotFoundError):
        await modal.Dict.from_name("nothing", client=night.client).get.aio("a")


async def test_items_survive_a_restart(begin: Begin) -> None:
    night = await begin(deploy=False)
    store = store_of(night)
    await store.update.aio({"kept": 1, "taken": 2})
    await store.pop.aio("taken")
    await night.plane.stop()

    again = await begin(deploy=False)
    assert [item async for item in store_of(again).items.aio()] == [("kept", 1)]
