"""Fault plans: what is read, and what is refused in words."""

from pathlib import Path

import pytest

from kev.emulator.faults import Faults
from kev.emulator.plan import Fault, FaultPlan, read_plan
from kev.emulator.wire import GRPCError, Status
from kev.errors import DamagedFile, NotFound

FULL = """
[[fault]]
rpc = ["poll", "VolumeList*"]
kind = "throttle"
retry_after_s = 5
times = 200

[[fault]]
name = "billing"
kind = "refuse"
message = "workspace has reached its spend limit"

[[sequence]]
rpc = ["spawn"]
steps = ["billing", "ok"]

[[container]]
function = "run_*"
event = "preempt"
at_log = "step 100"

[clock]
container_skew_s = -120

[volumes]
stale_s = 3

[logs]
lag_s = 2
retention_s = 600

[limits]
gpus = 2
app_creations_per_minute = 5

[money]
spend_cap_usd = "12.50"
at_cap = "stop"

[results]
retention_s = 60
"""


def test_a_plan_says_everything_that_can_go_wrong(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(FULL)
    plan = read_plan(path)

    assert plan.fault[0].retry_after_s == 5 and plan.sequence[0].steps == ("billing", "ok")
    assert (plan.limits.gpus, plan.clock.container_skew_s, str(plan.money.spend_cap_usd)) == (2, -120, "12.50")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[fault]]\nrpc = ['spawn']\nkind = 'explode'", "fault.0.kind: input should be 'unavailable'"),
        ("[[fault]]\nrpc = ['spawn']\nkind = 'refuse'\ntime = 3", "fault.0.time: extra inputs are not permitted"),
        ("[[fault]]\nrpc = ['spawn']\nkind = 'throttle'", "throttle needs retry_after_s"),
        ("[[fault]]\nrpc = ['spawn']\nkind = 'slow'", "slow needs delay_s"),
        ("[[fault]]\nkind = 'refuse'", "neither rpc nor name"),
        ("[[sequence]]\nrpc = ['spawn']\nsteps = ['lost']", "step 'lost' is no fault of this plan"),
        ("[[container]]\nevent = 'oom'", "exactly one of after_s and at_log"),
        ("[limits]\ngpus = -1", "limits.gpus: input should be greater than or equal to 0"),
        ("[faults]\n", "faults: extra inputs are not permitted"),
        ("fault = ", "not TOML"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused_with_the_place(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(DamagedFile) as refused:
        read_plan(path)

    assert reason in str(refused.value) and str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_a_plan_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_plan(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DamagedFile, match="not UTF-8"):
        read_plan(tmp_path / "binary.toml")


async def outcome(faults: Faults, rpc: str, *, from_container: bool = False) -> str:
    try:
        return "lost" if await faults.before(rpc, from_container=from_container) else "answered"
    except GRPCError as error:
        return error.status.name


async def test_a_fault_spares_the_first_requests_and_then_hits_so_many() -> None:
    faults = Faults(FaultPlan(fault=(Fault(rpc=("spawn",), kind="unavailable", skip=2, times=2),)))

    seen = [await outcome(faults, "FunctionMap") for _ in range(6)]
    assert seen == ["answered"] * 2 + ["UNAVAILABLE"] * 2 + ["answered"] * 2


async def test_groups_and_patterns_select_procedures() -> None:
    faults = Faults(FaultPlan(fault=(Fault(rpc=("volume", "App*"), kind="refuse", times=-1),)))

    hit = {rpc: await outcome(faults, rpc) for rpc in ("VolumeGetFile2", "AppList", "FunctionMap")}
    assert hit == {"VolumeGetFile2": "RESOURCE_EXHAUSTED", "AppList": "RESOURCE_EXHAUSTED", "FunctionMap": "answered"}


async def test_requests_of_containers_are_not_counted_against_a_fault_for_clients() -> None:
    faults = Faults(FaultPlan(fault=(Fault(rpc=("any",), kind="lost-reply"),)))

    assert await outcome(faults, "VolumeCommit", from_container=True) == "answered"
    assert await outcome(faults, "VolumeCommit") == "lost"
    assert faults.injected == [("VolumeCommit", "lost-reply")]


def test_only_a_throttle_carries_the_hint_to_come_back() -> None:
    from kev.emulator.wire import throttled

    assert throttled("slow down", 2.5).details[0].retry_after_secs == 2.5
    assert throttled("no more money", None).details is None
    assert throttled("no more money", None).status is Status.RESOURCE_EXHAUSTED
