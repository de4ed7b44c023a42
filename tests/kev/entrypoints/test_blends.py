"""Mixing and mirroring, as far as the launcher's machine decides."""

from dataclasses import replace
from typing import Any

import pytest

from kev.compute.protocol import CallState, Entry, EntryKind, Phase
from kev.entrypoints.interpolation import run_interpolation
from kev.entrypoints.mirror import LARGE, MirrorRequest, checkpoints_in, run_mirror
from kev.errors import NotFound, Refused, UsageError
from kev.rounds.blend_orders import BlendRequest, check_blend

from .conftest import NOW, Desk

SFT = "/runs/n/00-trial-0/checkpoint"
BLEND = BlendRequest(SFT, "27b-a", "0.85,0.70,0.50", "org/base", "f" * 40, "r20-wise", 10_800)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sft": "n/00-trial-0"}, "under /runs/"),
        ({"toward": "org/other"}, "owner/name@revision"),
        ({"blend_head": True}, "--blend-head needs a checkpoint .toward."),
        ({"prefix": "../up"}, "--prefix"),
        ({"study": ""}, "--study"),
        ({"alphas": "1.0"}, "whole hundredths"),
        ({"alphas": "0.855"}, "whole hundredths"),
        ({"alphas": "nan"}, "whole hundredths"),
        ({"alphas": "0.5,0.50"}, "twice"),
        ({"timeout": 0}, "--timeout"),
    ],
)
def test_a_blend_that_cannot_be_meant_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_blend(replace(BLEND, **changes))


async def test_a_blend_is_admitted_at_the_bound_of_its_cores_and_its_record_comes_home(desk: Desk) -> None:
    def arrive(payload: dict[str, Any]) -> None:
        for alpha in payload["alphas"]:
            desk.put(f"r20-wise/27b-a-w{alpha[2:]}/interpolation.json", {"alpha": float(alpha)})

    desk.compute.on_spawn = arrive
    assert await run_interpolation(desk.place, BLEND) == 0
    [unit] = desk.units().values()
    assert (unit.id, unit.order.kind, str(unit.order.attempt_usd), unit.outcome) == (
        "blend/r20-wise/27b-a", "blend", "4.2072", "done",
    )  # fmt: skip
    assert (desk.root / "runs/r20-wise/27b-a-w70/interpolation.json").exists()
    # The same again finds what was made; another of that name is refused.
    assert await run_interpolation(desk.place, BLEND) == 0
    assert len(desk.compute.spawned) == 1
    with pytest.raises(Refused, match="a name is used once"):
        await run_interpolation(desk.place, replace(BLEND, alphas="0.6"))
    desk.put("taken/27b-a-w10/interpolation.json", {})
    with pytest.raises(Refused, match="use another --prefix"):
        await run_interpolation(desk.place, replace(BLEND, alphas="0.1", study="taken"))


async def test_a_blend_that_failed_says_why_and_exits_1(desk: Desk) -> None:
    desk.compute.states["fc-1"] = CallState(Phase.SUCCEEDED, NOW, result={"refused": "is an adapter"})
    assert await run_interpolation(desk.place, BLEND) == 1
    assert any("FAILED" in line and "is an adapter" in line for line in desk.lines)


def entry(path: str, size: int = 10) -> Entry:
    return Entry(path, EntryKind.FILE, size, 0)


def test_checkpoints_are_found_with_what_would_be_copied_and_whether_they_are_whole() -> None:
    found = checkpoints_in(
        [
            entry("n/00-trial-0/checkpoint/head.pt"), entry("n/00-trial-0/checkpoint/model.safetensors", 100),
            entry("n/00-trial-0/checkpoint/training_metrics.json", 1),
            entry("n/00-trial-0/checkpoint/resume/step-0000005/rank0.pt", 500),
            entry("n/00-trial-0/snapshots/step-5/checkpoint/head.pt"),
            entry("n/00-trial-0/snapshots/step-5/checkpoint/snapshot.json", 1),
            entry("n/01-trial-1/checkpoint/head.pt"), entry("n/01-trial-1/train.log"),
        ]
    )  # fmt: skip
    assert [(each.path, each.bytes, each.complete) for each in found] == [
        ("/runs/n/00-trial-0/checkpoint", 111, True),
        ("/runs/n/00-trial-0/snapshots/step-5/checkpoint", 11, True),
        ("/runs/n/01-trial-1/checkpoint", 10, False),
    ]


def put_trial(desk: Desk, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("head.pt", "training_metrics.json", "model.safetensors")

    async def listdir(_volume: str, path: str, *, recursive: bool = False) -> list[Entry]:
        place = f"{path.removesuffix('/00-trial-0')}/00-trial-0/checkpoint"
        return [entry(f"{place}/{name}", size if name == names[-1] else 1) for name in names] if recursive else []

    monkeypatch.setattr(desk.compute, "listdir", listdir)


async def test_a_dry_run_shows_sizes_and_starts_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    put_trial(desk, 2 * 10**9, monkeypatch)
    assert await run_mirror(desk.place, MirrorRequest("n", "", "owner/name", dry_run=True)) == 0
    assert "   2.000 GB  /runs/n/00-trial-0/checkpoint" in desk.lines
    assert desk.compute.spawned == [] and not desk.units()


async def test_a_large_checkpoint_needs_its_owners_word(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    put_trial(desk, LARGE + 1, monkeypatch)
    request = MirrorRequest("", "/runs/n/00-trial-0/checkpoint", "owner/name")
    with pytest.raises(Refused, match="its owner is asked"):
        await run_mirror(desk.place, request)
    assert desk.compute.spawned == []
    assert await run_mirror(desk.place, replace(request, force=True)) == 0
    [(function, payload, gpu, _)] = desk.compute.spawned
    assert (function, gpu, payload["checkpoints"]) == ("run_mirror", None, ["/runs/n/00-trial-0/checkpoint"])
    [unit] = desk.units().values()
    assert (unit.order.kind, unit.outcome) == ("mirror", "done")


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (MirrorRequest("", "", "owner/name"), UsageError, "name a --study or --paths"),
        (MirrorRequest("n", "", "nothing"), UsageError, "owner/name"),
        (MirrorRequest("n", "", "owner/name"), NotFound, "has no checkpoint"),
        (MirrorRequest("", "/runs/n/00-trial-0", "owner/name"), UsageError, "/checkpoint"),
        (MirrorRequest("", "/runs/n/00-trial-0/checkpoint", "owner/name"), NotFound, "no checkpoint there"),
    ],
)
async def test_a_mirror_without_a_target_is_refused(
    desk: Desk, request_: MirrorRequest, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await run_mirror(desk.place, request_)
