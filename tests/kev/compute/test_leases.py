"""A lease that two attempts cannot both win, on the emulator and at every interleaving; and its public file."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kev import files
from kev.compute import leases
from kev.compute.claims import DictClaims
from kev.compute.client import ModalClient
from kev.compute.errors import Unavailable
from kev.compute.lease_watch import Evidence, LeaseWatch, Standing
from kev.compute.leases import HeldLease, LeaseFile, LeaseLost, LeaseRefused, acquire, count_claims, lease_path
from kev.errors import DamagedFile

from .conftest import Place

TRIAL = "r41-4b/00-trial-0"


class SetClock:
    def __init__(self, unix: float = 1_790_000_000.0) -> None:
        self.unix, self.seconds = unix, 0.0

    def now(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=self.unix)

    def monotonic(self) -> float:
        return self.seconds


class LocalClaims:
    """Claims in memory. `before` is called with the count of each operation, before it is done."""

    def __init__(self, keys: set[str] | None = None, before: Callable[[int], None] = lambda _: None) -> None:
        self.keys = set() if keys is None else keys
        self.operations = 0
        self._before = before

    def _step(self) -> None:
        self.operations += 1
        self._before(self.operations)

    def put_new(self, key: str) -> bool:
        self._step()
        is_new = key not in self.keys
        self.keys.add(key)
        return is_new

    def has(self, key: str) -> bool:
        self._step()
        return key in self.keys


def lease_file(root: Path, commit: Callable[[], None] = lambda: None) -> LeaseFile:
    return LeaseFile(lease_path(root, TRIAL), reload=lambda: None, commit=commit)


def take(
    root: Path, claims: leases.Claims, nonce: str, evidence: Evidence | None = None, **options: object
) -> HeldLease:
    clock = options.pop("clock", SetClock())
    return acquire(
        lease_file(root), claims, TRIAL, nonce=nonce, attempt=1, call_id=f"fc-{nonce}", clock=clock,  # type: ignore[arg-type]
        evidence=evidence,
    )  # fmt: skip


# The race.


async def test_of_two_attempts_that_race_on_the_emulator_exactly_one_wins_each_time(
    place: Place, tmp_path: Path
) -> None:
    clients = [ModalClient(place.settings), ModalClient(place.settings)]
    claims = [DictClaims("kev-leases", client=await client.open()) for client in clients]
    for number in range(12):
        trial, start = f"race/{number:02}-trial", threading.Barrier(2)

        def attempt(racer: int, trial: str = trial, start: threading.Barrier = start) -> str:
            file = LeaseFile(lease_path(tmp_path, trial), lambda: None, lambda: None)
            start.wait()
            try:
                acquire(file, claims[racer], trial, nonce=f"n{racer}", attempt=1, call_id=None, clock=SetClock())
            except LeaseRefused:
                return "refused"
            return f"n{racer}"

        outcomes = await asyncio.gather(*(asyncio.to_thread(attempt, racer) for racer in range(2)))
        winners = [each for each in outcomes if each != "refused"]
        assert len(winners) == 1
        assert json.loads(lease_path(tmp_path, trial).read_text())["nonce"] == winners[0]
    for client in clients:
        await client.close()


@pytest.mark.parametrize("former", [None, "ended", "stale"])
@pytest.mark.parametrize("moment", range(1, 10))
def test_a_rival_at_any_moment_of_an_acquire_never_makes_two_holders(
    tmp_path: Path, former: str | None, moment: int
) -> None:
    keys: set[str] = set()
    evidence = None
    if former:
        held = take(tmp_path, LocalClaims(keys), "former")
        if former == "ended":
            held.release()
        else:
            evidence = Evidence(1, "former", float(held.lease.heartbeat))
    winners: list[HeldLease] = []

    def rival(operation: int) -> None:
        if operation == moment:
            with suppress(LeaseRefused):
                winners.append(take(tmp_path, LocalClaims(keys), "rival", evidence))

    with suppress(LeaseRefused):
        winners.append(take(tmp_path, LocalClaims(keys, before=rival), "first", evidence))
    assert len(winners) == 1
    (winner,) = winners
    winner.beat()
    assert files.read_json(lease_path(tmp_path, TRIAL))["nonce"] == winner.lease.nonce


def test_who_slept_between_claim_and_file_and_was_succeeded_finds_out_before_it_works(tmp_path: Path) -> None:
    keys: set[str] = set()
    slow_commit: list[HeldLease] = []

    def succeeded_meanwhile() -> None:
        # While the first writes its file, a watcher has long judged its claim dead, and another has been let in.
        keys.add(leases.claim_key(TRIAL, 2))

    file = lease_file(tmp_path, commit=succeeded_meanwhile)
    with pytest.raises(LeaseLost):
        slow_commit.append(
            acquire(file, LocalClaims(keys), TRIAL, nonce="slow", attempt=1, call_id=None, clock=SetClock())
        )
    assert slow_commit == []


# Whose turn it is.


def test_a_held_trial_refuses_at_once_and_names_its_holder(tmp_path: Path) -> None:
    claims = LocalClaims()
    take(tmp_path, claims, "a")
    with pytest.raises(LeaseRefused, match="fc-a"):
        take(tmp_path, claims, "b")


def test_a_released_trial_is_won_at_once_and_the_file_says_by_whom_it_was_held(tmp_path: Path) -> None:
    claims, clock = LocalClaims(), SetClock()
    held = take(tmp_path, claims, "a", clock=clock)
    clock.unix += 60
    held.beat()
    clock.unix += 58
    held.release()
    take(tmp_path, claims, "b")
    assert files.read_json(lease_path(tmp_path, TRIAL)) == {
        "nonce": "b", "attempt": 1, "call_id": "fc-b", "started": 1790000000, "heartbeat": 1790000000, "ended": None,
        "previous": {"nonce": "a", "attempt": 1, "call_id": "fc-a", "heartbeat": 1790000118, "ended": 1790000118},
    }  # fmt: skip


def test_a_holder_that_was_succeeded_stops_at_its_next_beat_and_writes_nothing(tmp_path: Path) -> None:
    claims = LocalClaims()
    first = take(tmp_path, claims, "a")
    second = take(tmp_path, claims, "b", Evidence(1, "a", float(first.lease.heartbeat)))
    before = lease_path(tmp_path, TRIAL).read_bytes()
    for action in (first.beat, first.release):
        with pytest.raises(LeaseLost):
            action()
    assert lease_path(tmp_path, TRIAL).read_bytes() == before
    second.beat()


def test_while_the_claims_cannot_be_asked_a_beat_goes_on_unless_the_file_shows_another(tmp_path: Path) -> None:
    def down(_: int) -> None:
        raise Unavailable("no answer")

    claims, clock = LocalClaims(), SetClock()
    held = take(tmp_path, claims, "a", clock=clock)
    claims._before = down
    clock.unix += 60
    held.beat()
    assert files.read_json(lease_path(tmp_path, TRIAL))["heartbeat"] == clock.unix
    other = LocalClaims({leases.claim_key(TRIAL, 1)})
    take(tmp_path, other, "b", Evidence(1, "a", clock.unix))
    with pytest.raises(LeaseLost, match="fc-b"):
        held.beat()


def test_evidence_that_no_longer_fits_is_refused_since_the_holder_moved(tmp_path: Path) -> None:
    claims, clock = LocalClaims(), SetClock()
    held = take(tmp_path, claims, "a", clock=clock)
    evidence = Evidence(1, "a", float(held.lease.heartbeat))
    clock.unix += 60
    held.beat()
    with pytest.raises(LeaseRefused, match="alive"):
        take(tmp_path, claims, "b", evidence)


def test_a_claim_whose_holder_died_before_writing_its_file_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    claims = LocalClaims()
    take(tmp_path, claims, "a").release()
    assert claims.put_new(leases.claim_key(TRIAL, 2))
    with pytest.raises(LeaseRefused, match="which has not said that it ended"):
        take(tmp_path, claims, "c")
    heartbeat = files.read_json(lease_path(tmp_path, TRIAL))["heartbeat"]
    assert take(tmp_path, claims, "c", Evidence(2, "a", float(heartbeat))).number == 3


@pytest.mark.parametrize(("ended", "free"), [(1790000118, True), (None, False)])
def test_a_file_of_an_engine_without_claims_counts_by_itself(tmp_path: Path, ended: int | None, free: bool) -> None:
    path = lease_path(tmp_path, TRIAL)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"nonce": "old", "attempt": 1, "call_id": "fc-old", "started": 1790000000,
                                "heartbeat": 1790000118, "ended": ended, "previous": None}))  # fmt: skip
    if free:
        assert take(tmp_path, LocalClaims(), "b").number == 1
    else:
        with pytest.raises(LeaseRefused):
            take(tmp_path, LocalClaims(), "b")
        assert take(tmp_path, LocalClaims(), "b", Evidence(0, "old", 1790000118.0)).number == 1


def test_a_file_that_cannot_be_believed_lets_nobody_in(tmp_path: Path) -> None:
    path = lease_path(tmp_path, TRIAL)
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(DamagedFile):
        take(tmp_path, LocalClaims(), "b")


async def test_a_lost_answer_to_a_claim_refuses_rather_than_starting_two(place: Place, tmp_path: Path) -> None:
    client = ModalClient(place.settings)
    claims = DictClaims("kev-leases", client=await client.open())
    await asyncio.to_thread(claims.has, "connect first")
    place.fault(rpc=("DictUpdate",), kind="lost-reply")
    with pytest.raises(LeaseRefused):
        await asyncio.to_thread(take, tmp_path, claims, "a")
    assert await asyncio.to_thread(count_claims, claims, TRIAL) == (1, False)
    place.fault(rpc=("DictContains",), kind="unavailable", times=-1)
    with pytest.raises(Unavailable):
        await asyncio.to_thread(take, tmp_path, claims, "b")
    await client.close()


def test_a_watcher_and_the_claims_together_let_a_continuation_in_after_the_wait(tmp_path: Path) -> None:
    claims, clock = LocalClaims(), SetClock()
    held = take(tmp_path, claims, "a")
    watch = LeaseWatch(clock)
    count, ended = count_claims(claims, TRIAL)
    view = watch.look(held.lease, claims=count, claim_ended=ended)
    assert (view.standing, view.evidence) == (Standing.UNPROVEN, None)
    clock.seconds += view.wait_s
    view = watch.look(held.lease, claims=count, claim_ended=ended)
    assert view.standing is Standing.STALE
    assert take(tmp_path, claims, "b", view.evidence).number == 2


def test_the_call_that_holds_a_trial_takes_it_again_when_it_is_run_again_and_nobody_else_may(tmp_path: Path) -> None:
    keys: set[str] = set()
    first = take(tmp_path, LocalClaims(keys), "one")
    with pytest.raises(LeaseRefused):
        take(tmp_path, LocalClaims(keys), "two")
    again = take(tmp_path, LocalClaims(keys), "one")
    assert (again.number, again.lease.nonce) == (2, "one")
    with pytest.raises(LeaseLost):
        first.beat()


def test_a_call_that_was_given_up_does_not_come_back_by_being_run_again(tmp_path: Path) -> None:
    keys: set[str] = set()
    lost = take(tmp_path, LocalClaims(keys), "one")
    take(tmp_path, LocalClaims(keys), "two", Evidence(1, "one", float(lost.lease.heartbeat)))
    with pytest.raises(LeaseRefused):
        take(tmp_path, LocalClaims(keys), "one")


def test_a_claim_whose_maker_is_not_on_record_is_taken_again_by_nobody(tmp_path: Path) -> None:
    keys: set[str] = set()
    take(tmp_path, LocalClaims(keys), "one")
    keys -= {key for key in keys if "/by/" in key}
    with pytest.raises(LeaseRefused):
        take(tmp_path, LocalClaims(keys), "one")
