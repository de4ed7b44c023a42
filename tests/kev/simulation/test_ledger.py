"""The ledger keeps what was acknowledged, and is refused where it cannot be believed."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import Lab, order

from kev import files
from kev.compute.errors import NotDeployed
from kev.errors import DamagedFile, DamagedLine, KevError
from kev.ledger.book import Ledger
from kev.ledger.units import BILLING_LAG_S
from kev.ledger.views import write_views
from kev.records.base import read_record
from kev.records.ledger import LedgerEvent, Order
from kev.records.spawn import SpawnRecord

UNIT = "trial/r41-4b/trial-0"


def event(kind: str, at: float = 0.0, *, nonce: str | None = None, call: str | None = None, outcome: str | None = None,
          order: Order | None = None) -> LedgerEvent:  # fmt: skip
    return LedgerEvent(event=kind, at=at, unit="" if order else UNIT, nonce=nonce, call=call, outcome=outcome,
                       orders={UNIT: order} if order else None)  # fmt: skip


def add(runs: Path, *events: LedgerEvent) -> None:
    with Ledger(runs).writing() as book:
        book.add(*events)


def begun(runs: Path, attempts: int = 3) -> None:
    add(runs, event("wanted", order=order(attempts=attempts)), event("intent", nonce="a"))


def test_what_was_added_is_read_again_by_another_process(tmp_path: Path) -> None:
    begun(tmp_path)
    add(tmp_path, event("call", nonce="a", call="fc-1"))
    unit = Ledger(tmp_path).read().by_id[UNIT]
    assert unit.live is not None
    assert unit.live.call == "fc-1"
    assert unit.attempts_left == 2


def test_an_unsettled_trial_counts_at_its_remaining_attempts(tmp_path: Path) -> None:
    begun(tmp_path)
    assert Ledger(tmp_path).read().by_id[UNIT].rest() == 30
    add(tmp_path, event("ended", 7200, nonce="a", outcome="timed_out"))
    assert Ledger(tmp_path).read().by_id[UNIT].rest() == 20
    add(tmp_path, event("settled", 7300, outcome="failed"))
    assert Ledger(tmp_path).read().by_id[UNIT].rest() == 0


def test_work_that_ended_is_counted_until_the_meter_must_have_seen_it(tmp_path: Path) -> None:
    begun(tmp_path)
    add(tmp_path, event("ended", 1620, nonce="a", outcome="failed"))
    unit = Ledger(tmp_path).read().by_id[UNIT]
    assert unit.unseen(1700) == Decimal(5)  # half of its timeout, with the margin
    assert unit.unseen(1620 + BILLING_LAG_S) == 0


def test_a_clock_that_was_set_back_charges_the_whole_attempt(tmp_path: Path) -> None:
    add(tmp_path, event("wanted", order=order()), event("intent", 1000, nonce="a"))
    add(tmp_path, event("ended", 400, nonce="a", outcome="failed"))
    assert Ledger(tmp_path).read().by_id[UNIT].unseen(500) == 10


@given(cut=st.integers(1, 60))
def test_a_line_that_a_crash_cut_off_was_never_acknowledged_and_spoils_nothing(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    runs = tmp_path_factory.mktemp("runs")
    begun(runs)
    path = runs / "ledger.jsonl"
    whole = path.read_bytes()
    add(runs, event("call", nonce="a", call="fc-1"))
    torn = path.read_bytes()
    path.write_bytes(torn[: max(len(whole), len(torn) - cut)])
    unit = Ledger(runs).read().by_id[UNIT]
    assert unit.live is not None
    assert unit.live.call is None
    add(runs, event("call", nonce="a", call="fc-2"))
    assert Ledger(runs).read().calls() == {"fc-2"}
    assert files.read_json_lines(path)[-1]["call"] == "fc-2"


def test_an_empty_ledger_is_damage_and_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(b"")
    with pytest.raises(DamagedFile, match=r"empty.*spawn\.json"):
        begun(tmp_path)
    assert (tmp_path / "ledger.jsonl").read_bytes() == b""


def test_a_ledger_on_a_disk_that_is_not_there_is_no_new_one(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    place.mkdir()
    (place / "ledger.jsonl").symlink_to(tmp_path / "not mounted" / "ledger.jsonl")
    with pytest.raises(DamagedFile, match="a link to nothing"):
        Ledger(place).read()


def test_nothing_but_nul_bytes_is_damage(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(b"\0" * 4096)
    with pytest.raises(DamagedFile, match="empty"):
        Ledger(tmp_path).read()


@pytest.mark.parametrize("line", [b"{}\n", b"{\n", b'{"event": "gift", "at": 1}\n', b"\n"])
def test_a_whole_line_that_does_not_parse_is_damage_and_is_named(tmp_path: Path, line: bytes) -> None:
    begun(tmp_path)
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(DamagedLine, match="line 4"):
        Ledger(tmp_path).read()


def test_a_ledger_without_its_beginning_is_damage(tmp_path: Path) -> None:
    begun(tmp_path)
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(DamagedFile, match="beginning"):
        Ledger(tmp_path).read()


def test_a_line_damaged_after_it_was_read_is_noticed_by_the_same_reader(tmp_path: Path) -> None:
    begun(tmp_path)
    ledger = Ledger(tmp_path)
    ledger.read()
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b"wanted", b"want\x00d"))
    with pytest.raises(DamagedLine, match="line 2"):
        ledger.read()


def test_a_disk_that_takes_nothing_is_one_line_and_nothing_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path)
    before = (tmp_path / "ledger.jsonl").read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kev.files.appending.write_all", refuse)
    with pytest.raises(KevError, match="No space left on device"):
        add(tmp_path, event("call", nonce="a", call="fc-1"))
    assert (tmp_path / "ledger.jsonl").read_bytes() == before


def test_the_spawn_record_is_the_trials_view_in_its_public_shape(tmp_path: Path) -> None:
    add(tmp_path, event("wanted", order=order(attempts=3, study_usd=Decimal(30))), event("intent", 5, nonce="a" * 32))
    add(tmp_path, event("call", nonce="a" * 32, call="fc-1"))
    write_views(tmp_path, Ledger(tmp_path).read())
    record = read_record(tmp_path / "r41-4b.spawn.json", SpawnRecord)
    assert record.to_json() == {
        "name": "r41-4b", "calls": {"trial-0": "fc-1"},
        "attempts": {"trial-0": [{"nonce": "a" * 32, "call": "fc-1", "at": 5}]},
        "bound_usd": 30, "gpu": "H200", "timeout": 3600, "full_ft": True, "modal_retries": 0,
    }  # fmt: skip
    assert record.has_ledger


def test_a_spawn_record_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    begun(tmp_path)
    (tmp_path / "r41-4b.spawn.json").write_bytes(b"")
    with pytest.raises(DamagedFile):
        write_views(tmp_path, Ledger(tmp_path).read())
    assert (tmp_path / "r41-4b.spawn.json").read_bytes() == b""


def test_a_read_has_a_record_with_its_call(lab: Lab) -> None:
    payload = {"run": "/runs/x/checkpoint", "suite": "evals/hard", "name": "r41-a-hard", "flags": ""}
    read = order(kind="read", name="r41-a-hard", function="run_bench", payload=payload)
    add(lab.runs, event("wanted", order=read), event("intent", nonce="a"), event("call", nonce="a", call="fc-9"))
    write_views(lab.runs, Ledger(lab.runs).read())
    record = files.read_json(lab.runs / "r41-a-hard.read.json")
    assert (record["call"], record["status"], record["suites"]) == ("fc-9", "running", ["evals/hard"])


async def test_the_spawn_record_is_on_disk_with_its_intent_before_the_call_exists(lab: Lab) -> None:
    await lab.gate.reserve("r41-4b", [(UNIT, order(attempts=3, study_usd=Decimal(30)))])
    seen: list[SpawnRecord] = []
    lab.compute.began = lambda _: seen.append(read_record(lab.runs / "r41-4b.spawn.json", SpawnRecord))
    ref = await lab.gate.start(UNIT)
    (before,) = seen
    assert before.calls == {"trial-0": None}
    assert [(entry.call, entry.at) for entry in before.attempts["trial-0"]] == [(None, lab.clock.now().timestamp())]
    after = read_record(lab.runs / "r41-4b.spawn.json", SpawnRecord)
    assert (
        after.calls == {"trial-0": ref.id} and after.attempts["trial-0"][0].nonce == before.attempts["trial-0"][0].nonce
    )


async def test_a_spawn_that_was_refused_leaves_nothing_in_the_views_that_counts(lab: Lab) -> None:
    lab.compute.deployed = False
    read = order(kind="read", name="r41-a-hard", function="run_bench", payload={"run": "x", "suite": "y", "name": "z"})
    await lab.gate.reserve("both", [(UNIT, order()), ("read/runs/r41-a-hard", read)])
    for unit in (UNIT, "read/runs/r41-a-hard"):
        with pytest.raises(NotDeployed):
            await lab.gate.start(unit)
    assert not (lab.runs / "r41-4b.spawn.json").exists()
    assert files.read_json(lab.runs / "r41-a-hard.read.json")["status"] == "refused"
