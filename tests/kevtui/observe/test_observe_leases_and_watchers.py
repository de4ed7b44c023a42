"""Who is alive: leases by their heartbeats, watchers by their signs of life, through our own sleep too."""

from typing import Any

from kevtui.observe.snapshot import LeaseState, WatcherState


def test_a_lease_is_judged_by_how_long_its_heartbeat_stood_still(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    ahead = clock.now().timestamp() + 600
    checkout.lease("r9-a", heartbeat=ahead)
    observer = watching()
    lease = observer.observe().leases[0]
    assert (lease.state, lease.unchanged_s, lease.stamp_age_s) == (LeaseState.CLOCK_AHEAD, None, None)
    clock.pass_(60)
    checkout.lease("r9-a", heartbeat=ahead + 60)
    lease = observer.observe().leases[0]
    assert (lease.state, lease.skew_s, lease.nonce_matches) == (LeaseState.FRESH, 600, True)
    states = []
    for _ in range(40):
        clock.pass_(25)
        states.append(observer.observe().leases[0].state)
    assert LeaseState.LATE in states and states[-1] is LeaseState.STALE


def test_a_lease_of_another_attempt_than_the_ledgers_newest_is_told(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.lease("r9-a", heartbeat=clock.now().timestamp(), nonce="f" * 32)
    snapshot = watching().observe()
    assert snapshot.leases[0].nonce_matches is False
    assert "lease-nonce" in {alert.code for alert in snapshot.alerts}


def test_leases_stand_in_the_order_of_their_names_whoever_came_first(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a", labels=12)
    now, later = clock.now().timestamp(), (3, 0)
    for number in (10, 2, 11, 1):
        checkout.lease("r9-a", heartbeat=now, trial=f"{number:02d}-trial-{number}")
    observer = watching()
    observer.observe()
    for number in later:
        checkout.lease("r9-a", heartbeat=now, trial=f"{number:02d}-trial-{number}")
    clock.pass_(1)
    order = [lease.trial for lease in observer.observe().leases]
    assert order == [f"r9-a/trial-{number}" for number in (0, 1, 2, 3, 10, 11)]


def test_our_own_suspension_is_not_anothers_silence(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    checkout.lease("r9-a", heartbeat=clock.now().timestamp())
    observer = watching()
    before = observer.observe()
    assert before.watcher.state is not WatcherState.DOWN
    clock.pass_(7200)
    after = observer.observe()
    assert after.leases[0].state is not LeaseState.STALE
    assert after.watcher.state is before.watcher.state


def test_a_watcher_that_rests_with_work_left_is_down(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching()
    observer.observe()
    for _ in range(20):
        clock.pass_(25)
        snapshot = observer.observe()
    assert snapshot.watcher.state is WatcherState.DOWN
    assert snapshot.alerts[0].code == "watcher-down"


def test_a_watcher_lives_by_its_own_sign_of_life_though_nothing_of_its_studies_changes(
    checkout: Any, watching: Any, clock: Any
) -> None:
    def pass_made(number: int, state: str = "watching") -> None:
        checkout.write("runs/dusk-watcher.json", {
            "round": 9, "process": 77, "host": "h", "at": clock.now().timestamp(), "passes": number, "state": state,
        })  # fmt: skip

    checkout.state("dusk", studies={"r9-a": {"status": "running"}})
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    observer = watching("dusk")
    for number in range(20):
        pass_made(number)
        clock.pass_(25)
        snapshot = observer.observe()
    assert snapshot.watcher.state is WatcherState.ALIVE
    for _ in range(20):
        clock.pass_(25)
        snapshot = observer.observe()
    assert snapshot.watcher.state is WatcherState.DOWN
    pass_made(21, "done")
    clock.pass_(1)
    assert observer.observe().watcher.state is WatcherState.FINISHED


def test_a_provider_that_asks_to_slow_down_or_does_not_answer_is_said_with_its_beginning(
    checkout: Any, watching: Any, clock: Any
) -> None:
    def alerts(**silence: float | None) -> list[tuple[str, str]]:
        clock.pass_(25)
        checkout.write("runs/dusk-watcher.json", {
            "round": 9, "process": 77, "host": "h", "at": clock.now().timestamp(), "passes": 1, "state": "watching",
            **silence,
        })  # fmt: skip
        return [(alert.code, alert.text) for alert in observer.observe().alerts if alert.code == "provider-silent"]

    checkout.state("dusk", studies={"r9-a": {"status": "running"}})
    observer = watching("dusk")
    since = clock.now()
    assert alerts(throttled_since=since.timestamp(), unreachable_since=None) == [
        ("provider-silent", f"asked to slow down since {since:%H:%M}Z; it waits as it was told")
    ]
    ((_, words),) = alerts(throttled_since=None, unreachable_since=since.timestamp())
    assert words.startswith(f"the provider has not answered since {since:%H:%M}Z")
    assert alerts(throttled_since=None, unreachable_since=None) == []
