"""What is known in part is said to be: damaged ledgers, stale rates, several sessions, reads of later stages."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kevtui.observe.derive import NONCE_GRACE_S
from kevtui.observe.snapshot import ReadState, TrialState
from kevtui.observe.target import resolve


def spec(**more: Any) -> dict[str, Any]:
    panels = {"hard": {"reads": ["hard"], "metrics": ["acc"]}}
    late = {"long": {"reads": ["long"], "metrics": ["acc"]}}
    return {
        "round": 9, "registered": "by a test", "reads": {"hard": {"suite": "evals/hard"}, "long": {"suite": "evals/l"}},
        "parents": {"base": {"trial": "runs/base/00-trial-0", "reads": "runs/base-{tag}"}},
        "arms": {"4b-a": {"trial": "runs/r9-a/00-trial-0", "parent": "base"}, "4b-b": {"parent": "base"}},
        "rule": {"panels": panels, "criteria": {}},
        "confirm": {"decision": {"candidate_reads": "runs/r{round}-{arm}-late-{tag}", "panels": late, "criteria": {}}},
        **more,
    }  # fmt: skip


def test_simulated_money_alone_makes_no_sample(checkout: Any, watching: Any) -> None:
    checkout.state("rehearsal", simulated=True)
    checkout.state("show", simulated=True, sample=True)
    rehearsal, show = watching("rehearsal").observe(), watching("show").observe()
    assert (rehearsal.sample, rehearsal.money.simulated) == (False, True)
    assert show.sample


def test_a_spec_can_say_that_it_is_a_sample(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", spec(sample=True))
    assert watching("r9").observe().sample


def test_a_new_ledger_entry_is_given_time_to_take_the_lease(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    checkout.lease("r9-a", heartbeat=clock.now().timestamp())
    assert watching().observe().leases[0].nonce_matches is True
    entries = [{"nonce": "0" * 32, "call": "fc-1", "at": 1}, {"nonce": "b" * 32, "call": "fc-2", "at": 2}]
    clock.pass_(30)
    checkout.spawn("r9-a", attempts={"trial-0": entries})
    snapshot = watching().observe()
    assert snapshot.leases[0].nonce_matches is None
    assert not {alert.code for alert in snapshot.alerts} & {"lease-nonce"}
    clock.pass_(NONCE_GRACE_S)
    snapshot = watching().observe()
    assert snapshot.leases[0].nonce_matches is False
    assert "lease-nonce" in {alert.code for alert in snapshot.alerts}


def test_a_study_whose_ledger_cannot_be_read_has_a_row(checkout: Any, watching: Any) -> None:
    checkout.write("runs/r9-lost.spawn.json", b"")
    (study,) = watching().observe().studies
    assert (study.name, study.status_text) == ("r9-lost", "ledger damaged, bound unknown")
    assert (study.state, study.bound, study.settled, study.launched) == (TrialState.UNKNOWN, None, False, True)


def test_a_ledger_damaged_later_keeps_its_bound_committed(checkout: Any, watching: Any) -> None:
    checkout.state("night", studies={"r9-a": {"status": "done"}})
    checkout.spawn("r9-a")
    watching().observe()
    checkout.write("runs/r9-a.spawn.json", b"{")
    snapshot = watching().observe()
    assert snapshot.studies[0].status_text == "ledger damaged"
    assert (snapshot.money.committed, snapshot.money.committed_complete) == (Decimal("12.5"), False)
    assert snapshot.money.committed_note == "a ledger cannot be read"


@pytest.mark.parametrize(
    ("readings", "note"),
    [
        ([("2026-03-27T00:00:00Z", 1010), ("2026-03-27T01:00:00Z", 1020)], "at the last known rate"),
        ([("2026-03-27T01:00:00Z", 1020)], "a rate takes two readings"),
        ([("2026-03-27T00:00:00Z", 1020), ("2026-03-27T01:00:00Z", 1020)], "nothing was spent between the last readings"),  # noqa: E501
    ],
)  # fmt: skip
def test_when_the_money_is_gone_is_told_with_what_that_rests_on(
    checkout: Any, watching: Any, readings: list[tuple[str, float]], note: str
) -> None:
    checkout.state("night", readings=[{"at": at, "metered_usd": usd} for at, usd in readings])
    money = watching("night").observe().money
    assert money.exhaustion_note == note
    assert (money.exhausted_in_s is not None) == (note == "at the last known rate")
    if money.exhausted_in_s is not None:
        assert money.headroom is not None
        assert money.exhausted_in_s == pytest.approx(float(money.headroom) / 10 * 3600)


def test_nothing_committed_is_told_apart_from_nothing_known(checkout: Any, watching: Any) -> None:
    checkout.state("done", studies={"r9-a": {"status": "done, pulled"}})
    checkout.state("planned", studies={"r9-b": {"status": "planned"}})
    checkout.state("running", studies={"r9-c": {"status": "running"}})
    notes = {name: watching(name).observe() for name in ("done", "planned", "running")}
    assert notes["done"].money.committed_note == "all settled"
    assert notes["planned"].money.committed_note == "nothing launched"
    assert not notes["planned"].studies[0].launched
    assert not notes["running"].money.committed_complete
    assert notes["running"].money.committed_note == "the bound of running work is not known"


def test_of_several_sessions_in_a_folder_none_is_taken_and_that_is_said(checkout: Any, watching: Any) -> None:
    checkout.state("early")
    checkout.state("late")
    snapshot = watching().observe()
    assert snapshot.money.authorization is None
    (finding,) = snapshot.findings
    assert "early, late; none was taken" in finding.reason


def test_gateway_spend_comes_from_usage_records_where_no_state_has_it(checkout: Any, watching: Any) -> None:
    usage = {"model": "m", "calls": 1, "input_tokens": 1, "output_tokens": 1}
    checkout.write("runs/x-hard/usage.json", {**usage, "estimated_usd": 0.25})
    checkout.write("runs/x-docs/usage.json", {**usage, "estimated_usd": 0.5})
    assert watching().observe().money.gateway_spent == Decimal("0.75")
    checkout.state("night", ai_gateway={"spent_usd": 3})
    assert watching("night").observe().money.gateway_spent == Decimal(3)


def test_reads_of_a_confirmation_stage_have_columns_of_their_own(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", spec())
    assert watching("r9").observe().reads.tags == ("hard",)
    checkout.write("runs/r9-4b-a-late-long/rows.json", [])
    reads = watching("r9").observe().reads
    assert reads.tags == ("hard", "decision/long")
    landed = reads.cell("4b-a", "decision/long")
    assert landed is not None and landed.state is ReadState.LANDED
    assert reads.cell("4b-b", "decision/long") is None


def test_a_relative_folder_is_looked_for_under_the_root_that_was_named(tmp_path: Path) -> None:
    root, here = tmp_path / "data", tmp_path / "here"
    (root / "runs").mkdir(parents=True)
    (here / "experiments" / "rounds").mkdir(parents=True)
    assert resolve(".", root=root, cwd=here).root == root
    assert resolve(".", root=None, cwd=here).root == here
