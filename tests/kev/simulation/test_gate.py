"""The gate admits what stays below the authorization, on a fresh reading, and is the only door to a spawn."""

import ast
import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_compute import Plan
from lab import Lab, order

from kev import control
from kev.compute.errors import SpendLimitReached, Unavailable
from kev.errors import DamagedFile, KevError, LockHeld, Refused
from kev.files import locked
from kev.gate import AlreadyStarted
from kev.records.ledger import Order
from kev.rounds.blend_orders import BlendRequest, blend_order
from kev.rounds.trial_orders import Provenance, Wanted
from kev.session import lock_path, read_session, update_state

REPOSITORY = Path(__file__).parents[3]
ONE = "trial/r41-4b/trial-0"


def two(usd: str) -> list[tuple[str, Order]]:
    return [(f"trial/r41-4b/trial-{n}", order(label=f"trial-{n}", usd=usd)) for n in range(2)]


async def reserve(lab: Lab, usd: str = "10", attempts: int = 1, name: str = "r41-4b") -> None:
    await lab.gate.reserve(name, [(f"trial/{name}/trial-0", order(name=name, usd=usd, attempts=attempts))])


async def test_just_below_what_the_study_needs_is_refused_with_the_sum_and_just_above_is_launched(lab: Lab) -> None:
    with pytest.raises(Refused, match=r"bound \$90\.00 is not below the headroom \$90\.00 .*authorization \$100"):
        await lab.gate.reserve("r41-4b", two("45.00"))
    assert lab.gate.ledger.read().by_id == {}
    await lab.gate.reserve("r41-4b", two("44.99"))
    assert len(lab.gate.ledger.read().by_id) == 2
    assert any("simulated bound $89.98" in line for line in lab.said)
    assert any("authorization $100.00 - reserve $10.00" in line for line in lab.said)


async def test_what_is_reserved_and_not_started_counts_and_so_do_all_its_attempts(lab: Lab) -> None:
    await reserve(lab, "20", attempts=3)
    with pytest.raises(Refused, match=r"committed \$60"):
        await reserve(lab, "30", name="r42-4b")
    await reserve(lab, "29.99", name="r42-4b")


async def test_what_was_spent_counts_before_the_meter_shows_it(lab: Lab) -> None:
    lab.compute.lag = 1800
    lab.compute.plan = lambda *_: Plan(seconds=3600)
    lab.compute.hourly = lambda *_: Decimal(80)
    await reserve(lab, "80")
    await lab.gate.start(ONE)
    attempt = lab.gate.ledger.read().by_id[ONE].attempts[0]
    lab.clock.time = 3600
    lab.gate.settle_attempt(ONE, attempt.nonce, "ended", outcome="failed")
    with lab.gate.ledger.writing() as book:
        from kev.records.ledger import LedgerEvent

        book.add(LedgerEvent(event="settled", at=lab.clock.now().timestamp(), unit=ONE, outcome="failed"))
    assert lab.compute.metered() == 540
    with pytest.raises(Refused, match="headroom"):
        await reserve(lab, "10", name="r42-4b")
    lab.clock.time = 3600 * 3
    await reserve(lab, "9.99", name="r42-4b")


async def test_a_failed_attempt_is_charged(lab: Lab) -> None:
    lab.compute.hourly = lambda *_: Decimal(50)
    await reserve(lab, "50")
    await lab.gate.start(ONE)
    lab.clock.time = 100_000
    await lab.gate.read_meter()
    spent = read_session(lab.state).spent
    assert spent is not None
    assert round(spent.usd, 2) == Decimal("8.33")  # ten minutes


async def test_the_intent_is_on_disk_before_the_spawn(lab: Lab) -> None:
    seen: list[str] = []

    async def look(name: str) -> str:
        if name == "spawn":
            seen.extend(
                attempt.nonce for attempt in lab.new_gate().ledger.read().by_id[ONE].attempts if attempt.pending
            )
        return "ok"

    lab.compute.point = look
    await reserve(lab)
    await lab.gate.start(ONE)
    (call,) = lab.compute.calls.values()
    assert seen == [call.payload["nonce"]]
    assert call.run_id == f"{ONE}#1"


async def test_a_lost_reply_leaves_the_attempt_pending_and_nothing_is_spawned_again(lab: Lab) -> None:
    async def lose(name: str) -> str:
        return "lost" if name == "spawned" else "ok"

    lab.compute.point = lose
    await reserve(lab, attempts=3)
    with pytest.raises(Unavailable):
        await lab.gate.start(ONE)
    lab.compute.point = None
    with pytest.raises(AlreadyStarted, match="its call is not known"):
        await lab.new_gate().start(ONE)
    assert len(lab.compute.calls) == 1


async def test_a_refused_spawn_counts_as_no_attempt(lab: Lab) -> None:
    lab.compute.deployed = False
    await reserve(lab)
    with pytest.raises(KevError, match="no such app"):
        await lab.gate.start(ONE)
    lab.compute.deployed = True
    await lab.gate.start(ONE)
    assert list(lab.compute.calls) == ["fc-0000"]


async def test_the_spend_limit_stops_new_spawns_with_one_line_until_someone_lifts_it(lab: Lab) -> None:
    async def limit(name: str) -> str:
        return "limit" if name == "spawn" else "ok"

    lab.compute.point = limit
    await reserve(lab)
    with pytest.raises(SpendLimitReached):
        await lab.gate.start(ONE)
    lab.compute.point = None
    for _ in range(3):
        with pytest.raises(Refused, match="workspace has reached its spend limit"):
            await lab.gate.start(ONE)
    assert sum(line.startswith("!!!") for line in lab.said) == 1
    control.set_control(lab.state, "running", who="Ada", at=0, reason="")
    await lab.gate.start(ONE)


async def test_two_operators_at_once_start_one_attempt(lab: Lab) -> None:
    await reserve(lab, attempts=3)
    results = await asyncio.gather(lab.gate.start(ONE), lab.new_gate().start(ONE), return_exceptions=True)
    assert len(lab.compute.calls) == 1
    assert sorted(type(result).__name__ for result in results) == ["AlreadyStarted", "CallRef"]


async def test_nothing_is_started_where_another_unit_may_be_at_work(lab: Lab) -> None:
    trial, scores = order(attempts=2, usd="5"), order(kind="rescore", name="r41-4b/00-trial-0/rescore", usd="5")
    await lab.gate.reserve("both", [(ONE, trial), ("rescore/r41-4b/00-trial-0/0", scores.model_copy(
        update={"remote": trial.remote}))])  # fmt: skip
    await lab.gate.start("rescore/r41-4b/00-trial-0/0")
    with pytest.raises(Refused, match="rescore/r41-4b/00-trial-0/0 works in the same place and may be running"):
        await lab.gate.start(ONE)
    assert len(lab.compute.calls) == 1


async def test_two_blends_of_one_study_are_made_side_by_side_and_one_checkpoint_by_one_of_them(lab: Lab) -> None:
    def blend(prefix: str, alphas: str, retry: str = "") -> Wanted:
        request = BlendRequest("/runs/n/00-trial-0/checkpoint", prefix, alphas, "a/b", "f" * 40, "mix", 600)
        unit_id, order = blend_order(request, request.shares(), Provenance())
        return unit_id + retry, order

    wanted = [blend("2b", "0.85,0.5"), blend("9b", "0.85,0.5"), blend("2b", "0.50", retry="/retry1")]
    await lab.gate.reserve("blends", wanted)
    await lab.gate.start("blend/mix/2b")
    await lab.gate.start("blend/mix/9b")
    with pytest.raises(Refused, match="blend/mix/2b works in the same place and may be running"):
        await lab.gate.start("blend/mix/2b/retry1")


async def test_two_operators_at_once_cannot_both_have_the_last_dollars(lab: Lab) -> None:
    other = lab.new_gate()
    results = await asyncio.gather(
        reserve(lab, "50"),
        other.reserve("r42", [("trial/r42/trial-0", order("r42", usd="50"))]),
        return_exceptions=True,
    )
    assert sorted(type(result).__name__ for result in results) == ["NoneType", "Refused"]


async def test_who_holds_the_session_is_waited_for_and_then_named(lab: Lab) -> None:
    with locked(lock_path(lab.state)), pytest.raises(LockHeld, match="process"):
        await reserve(lab)
    assert lab.clock.time >= 120


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b'{"name": "r40", "calls": {'])
async def test_a_spawn_record_that_cannot_be_read_refuses_everything_and_stays(lab: Lab, content: bytes) -> None:
    path = lab.runs / "r40.spawn.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"r40\.spawn\.json"):
        await reserve(lab)
    assert path.read_bytes() == content
    assert lab.compute.calls == {}


async def test_the_complete_copy_of_a_damaged_record_is_named(lab: Lab) -> None:
    (lab.runs / "r40.spawn.json").write_bytes(b"")
    (lab.runs / ".r40.spawn.json.x1.tmp").write_text('{"name": "r40", "calls": {}}')
    with pytest.raises(DamagedFile, match=r"a complete copy is in .*\.r40\.spawn\.json\.x1\.tmp"):
        await reserve(lab)


async def test_an_empty_session_state_is_damage_and_no_fresh_session(lab: Lab) -> None:
    lab.state.write_bytes(b"")
    with pytest.raises(DamagedFile, match="empty"):
        await reserve(lab)
    assert lab.state.read_bytes() == b""


async def test_a_study_that_another_tool_launched_counts_until_its_watcher_saw_it_end(lab: Lab) -> None:
    (lab.runs / "r40.spawn.json").write_text('{"name": "r40", "calls": {"trial-0": "fc-9"}, "bound_usd": 85.5}')
    with pytest.raises(Refused, match=r"committed \$85\.5"):
        await reserve(lab)
    (lab.runs / "r40.watch.json").write_text('{"calls": {"trial-0": {"status": "failed", "transient": 60}}}')
    with pytest.raises(Refused, match=r"committed \$85\.5"):
        await reserve(lab)
    (lab.runs / "r40.watch.json").write_text('{"calls": {"trial-0": {"status": "done", "launched": true}}}')
    await reserve(lab)


async def test_the_end_of_an_earlier_call_settles_no_study_that_was_continued(lab: Lab) -> None:
    study = {"name": "r40", "calls": {"trial-0": "fc-2"}, "bound_usd": 85.5}
    watched = {"status": "failed", "call": "fc-1"}
    (lab.runs / "r40.spawn.json").write_text(json.dumps(study))
    (lab.runs / "r40.watch.json").write_text(json.dumps({"calls": {"trial-0": watched}}))
    with pytest.raises(Refused, match=r"committed \$85\.5"):
        await reserve(lab)
    (lab.runs / "r40.spawn.json").write_text(json.dumps(study | {"calls": {"trial-0": None}}))
    with pytest.raises(Refused, match=r"committed \$85\.5"):
        await reserve(lab)
    (lab.runs / "r40.watch.json").write_text(json.dumps({"calls": {"trial-0": watched | {"call": "fc-2"}}}))
    (lab.runs / "r40.spawn.json").write_text(json.dumps(study))
    await reserve(lab)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("r39.spawn.json", {"name": "r40", "calls": {"trial-0": "fc-1"}, "bound_usd": 20}),
        ("R40.spawn.json", {"name": "r40", "calls": {"trial-0": "fc-1"}, "bound_usd": 20}),
        ("r39-hard.read.json", {"name": "r40-hard", "kind": "benchmark", "run": "x", "suites": [], "gpu": "H200",
                                "timeout": 1800, "bound_usd": 1, "at": 1_790_000_000}),
    ],
)  # fmt: skip
async def test_a_record_under_the_name_of_another_work_hides_none(lab: Lab, name: str, record: dict[str, Any]) -> None:
    (lab.runs / "r40.spawn.json").write_text('{"name": "r40", "calls": {"trial-0": "fc-9"}, "bound_usd": 5}')
    (lab.runs / name).write_text(json.dumps(record))
    with pytest.raises(DamagedFile, match=r"rename it .*, or move it out of runs/") as found:
        await reserve(lab)
    assert name in str(found.value) and record["name"] in str(found.value)


async def test_a_bound_of_zero_is_a_price_that_nobody_knew(lab: Lab) -> None:
    (lab.runs / "r40.spawn.json").write_text('{"name": "r40", "calls": {"trial-0": "fc-9"}, "bound_usd": 0}')
    with pytest.raises(Refused, match="r40 unknown"):
        await reserve(lab)


async def test_a_read_that_another_tool_launched_counts_until_it_is_here_or_cannot_be_running(lab: Lab) -> None:
    at = lab.clock.now().timestamp()
    record = {"name": "r40-hard", "kind": "benchmark", "run": "x", "suites": ["evals/hard"], "gpu": "H200",
              "timeout": 1800, "bound_usd": 85.5, "at": at}  # fmt: skip
    path = lab.runs / "r40-hard.read.json"
    path.write_text(json.dumps(record))
    with pytest.raises(Refused, match=r"committed \$85\.5"):
        await reserve(lab)
    (lab.runs / "r40-hard").mkdir()
    (lab.runs / "r40-hard" / "report.json").write_text("{}")
    await reserve(lab)
    (lab.runs / "r40-hard" / "report.json").unlink()
    with pytest.raises(Refused, match=r"committed \$95\.5"):
        await reserve(lab, name="r42")
    lab.clock.time += 8 * 3600
    await reserve(lab, name="r42")
    path.write_bytes(b"")
    with pytest.raises(DamagedFile, match="empty"):
        await reserve(lab, name="r43")


async def test_a_study_whose_bound_nobody_knows_refuses_everything(lab: Lab) -> None:
    (lab.runs / "r40.spawn.json").write_text('{"name": "r40", "calls": {"trial-0": "fc-9"}}')
    with pytest.raises(Refused, match="not fully known"):
        await reserve(lab, "1")


async def test_a_name_that_the_ledger_did_not_use_and_a_spawn_record_has_is_refused(lab: Lab) -> None:
    (lab.runs / "r41-4b.spawn.json").write_text('{"name": "r41-4b", "calls": {}, "bound_usd": 1}')
    with pytest.raises(Refused, match="a name is never used again"):
        await reserve(lab)


async def test_a_name_that_some_disks_take_for_another_is_refused_and_a_launch_of_the_same_is_completed(
    lab: Lab,
) -> None:
    await reserve(lab)
    (lab.runs / "Elder.spawn.json").write_text('{"name": "Elder", "calls": {}, "bound_usd": 1}')
    await reserve(lab)
    for name in ("R41-4B", "elder"):
        with pytest.raises(Refused, match="is there already, and some file systems do not tell the two names apart"):
            await reserve(lab, name=name)


async def test_what_is_read_once_is_read_once_whatever_it_is_called(lab: Lab) -> None:
    first, second = (order(kind="read", name=name, once="x|hard|test") for name in ("r41-a", "r41-b"))
    await lab.gate.reserve("reads", [("read/r41-a", first)])
    await lab.gate.start("read/r41-a")
    with pytest.raises(Refused, match=r"x\|hard\|test is read once, and read/r41-a has it"):
        await lab.gate.reserve("reads", [("read/r41-b", second)])
    with pytest.raises(Refused, match="is read once"):
        await lab.gate.reserve("reads", [("read/r41-c", order(kind="read", name="c", once="y")),
                                         ("read/r41-d", order(kind="read", name="d", once="y"))])  # fmt: skip


async def test_the_gateway_has_a_cap_of_its_own_and_an_unknown_one_refuses(lab: Lab) -> None:
    read = order(kind="read", name="jev", gateway_usd=Decimal("0.5"))
    with pytest.raises(Refused, match="gateway may spend, or has spent, is unknown"):
        await lab.gate.reserve("jev", [("read/jev", read)])
    gateway = {"authorization_usd": Decimal(1), "spent_usd": Decimal("0.5")}
    update_state(lab.state, lambda state: type(state).model_validate(state.model_dump() | {"ai_gateway": gateway}))
    with pytest.raises(Refused, match="gateway bound"):
        await lab.gate.reserve("jev", [("read/jev", read)])


async def test_every_decision_is_an_event(lab: Lab) -> None:
    await reserve(lab)
    await lab.gate.start(ONE)
    with pytest.raises(Refused):
        await reserve(lab, "99", name="r42")
    assert lab.read_events() == ["reading", "admitted", "launch", "refused"]


THE_DOOR = "kev/gate.py"
THE_PROVIDER_ITSELF = ("kev/compute/", "kev/emulator/")


def spawns(path: Path) -> list[int]:
    tree = ast.parse(path.read_text())
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "spawn"]


def test_no_other_module_reaches_a_providers_spawn() -> None:
    found = {}
    for package in ("kev", "kevtui"):
        for path in (REPOSITORY / package).rglob("*.py"):
            name = path.relative_to(REPOSITORY).as_posix()
            if name.startswith(THE_PROVIDER_ITSELF):
                continue
            # The dashboard's sources have a `spawn(study)` of their own, which reads a spawn record.
            lines = [] if package == "kevtui" and not _imports_compute(path) else spawns(path)
            if lines:
                found[name] = lines
    assert set(found) == {THE_DOOR}


def _imports_compute(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.startswith(("kev.compute", "modal")) for name in names):
            return True
    return False
