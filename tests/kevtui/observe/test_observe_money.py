"""What is spent, committed and left, as the files of a session say it; unknown is never nothing."""

from decimal import Decimal
from typing import Any

from checkout_files import SPEC

from kevtui.headless import once, status_line
from kevtui.headless.output import Output


def test_committed_counts_every_unsettled_bound_and_headroom_what_is_left(checkout: Any, watching: Any) -> None:
    checkout.state("dusk", studies={"r9-a": {"bound_usd": 12.5, "status": "running"},
                                    "r9-b": {"bound_usd": 99, "status": "done, read"}})  # fmt: skip
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {})
    money = watching("dusk").observe().money
    assert (money.spent, money.committed, money.reserve) == (Decimal("10.25"), Decimal("12.5"), Decimal(20))
    assert money.headroom == Decimal("200") - 20 - Decimal("10.25") - Decimal("12.5")
    assert money.committed_complete and money.reading_stale and money.source == "dusk-state.json"


def test_a_settled_study_commits_nothing_more(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "failed", "error": "x"})
    money = watching().observe().money
    assert (money.committed, money.committed_complete) == (Decimal(0), True)


def test_money_nobody_stated_is_unknown_and_not_zero(checkout: Any, watching: Any) -> None:
    money = watching().observe().money
    assert (money.committed, money.spent, money.headroom, money.authorization) == (None, None, None, None)


def test_a_spec_without_a_state_file_gives_its_own_budget(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    money = watching("r9").observe().money
    assert (money.authorization, money.baseline, money.spent, money.headroom) == (50, Decimal("7.25"), None, None)
    assert money.source == "budget block of r9.json"


def test_the_session_that_is_opened_for_a_round_while_it_is_watched_is_taken(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", {**SPEC, "budget": None})
    observer = watching("r9")
    before = observer.observe()
    assert (before.session, before.title, before.money.authorization) == (None, "r9", None)
    checkout.state("noon")
    assert observer.observe().session is None, "it is of no round"
    checkout.state("night", rounds=["experiments/rounds/r9.json"])
    after = observer.observe()
    assert (after.session, after.title, after.state_file) == ("night", "r9 · night", "runs/night-state.json")
    assert after.money.authorization == 200
    checkout.state("other", rounds=["experiments/rounds/r9.json"])
    assert observer.observe().session == "night", "what was taken stays"


def test_a_reading_from_the_future_has_no_age_and_is_said_to_be_ahead_and_not_new(checkout: Any, watching: Any) -> None:
    checkout.state("dusk", readings=[{"at": "2099-10-25T02:30:00+02:00", "metered_usd": 1010.75}])
    snapshot = watching("dusk").observe()
    assert (snapshot.money.reading_age_s, snapshot.money.reading_stale) == (None, True)
    (alert,) = [alert for alert in snapshot.alerts if alert.code == "stale-reading"]
    assert alert.text == "the billing reading is dated ahead of this machine's clock: nothing is launched on it"
    assert "reading ahead of the clock" in status_line.render(snapshot)
    shown = once.render(snapshot, Output(None, {}))
    assert "STALE, of 2099-10-25 00:30Z, which is ahead of this machine's clock" in shown
