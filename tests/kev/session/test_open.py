"""Opening a session fixes what may be spent and from where; showing it asks nobody."""

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_compute import EPOCH, FakeClock, FakeCompute

from kev.errors import DamagedFile, KevError, NotFound, Refused, UsageError
from kev.session import events_path, read_events, read_session, update_state, with_reading
from kev.session.__main__ import build_parser, main
from kev.session.find import find_state
from kev.session.open import Opening, begin, check_opening, take_baseline
from kev.session.standing import read_standing

HUNDRED = Decimal(100)


def compute_at(metered: str, **more: Any) -> FakeCompute:
    compute = FakeCompute(FakeClock(), deliver=lambda *_: None)
    compute.metered_override = Decimal(metered)
    for key, value in more.items():
        setattr(compute, key, value)
    return compute


async def opened(root: Path, metered: str = "500", **changes: Any) -> Path:
    wanted = Opening(**{"name": "night", "authorization": HUNDRED, **changes})
    compute = compute_at(metered)
    path = check_opening(root, wanted)
    begin(path, await take_baseline(compute, compute.clock, wanted), compute.clock.now())
    return path


async def test_a_session_begins_at_the_meter_with_a_tenth_kept_back_and_says_whose_money_it_is(tmp_path: Path) -> None:
    path = await opened(tmp_path, "1085.31568035")
    session = read_session(path)
    (event,) = read_events(events_path(path)).events
    assert (event.kind, event.text) == ("opened", "simulated authorization $100, baseline $1085.31568035")
    assert (session.baseline, session.reserve, session.cycle) == (Decimal("1085.31568035"), Decimal(10), "2026-11")
    assert session.simulated and session.opened_at == EPOCH
    assert session.spent is not None and session.spent.usd == 0
    assert [(made.at, made.metered) for made in session.readings] == [(EPOCH, Decimal("1085.31568035"))]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../x"}, "begins with a letter or digit"),
        ({"name": ""}, "1 to 80 letters"),
        ({"reserve": HUNDRED}, "the whole authorization of \\$100 would be kept back"),
        ({"rounds": ("../r1.json",)}, "inside this checkout"),
        ({"rounds": ("absent.json",)}, "no such file"),
    ],
)
async def test_what_cannot_be_meant_opens_nothing(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(KevError, match=words):
        await opened(tmp_path, **changes)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"session": "night"'])
async def test_a_name_that_is_taken_is_refused_even_where_its_file_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs" / "night-state.json"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(Refused, match="of this name already"):
        await opened(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("answer", [Decimal("NaN"), Decimal(-1), None, "512"])
async def test_a_meter_that_says_no_amount_opens_nothing(tmp_path: Path, answer: Any) -> None:
    compute = compute_at("1", metered_override=answer)
    with pytest.raises(Refused, match="the spend is unknown"):
        await take_baseline(compute, compute.clock, Opening("night", HUNDRED))


async def test_the_sum_that_is_shown_is_the_one_a_launch_is_held_against(tmp_path: Path) -> None:
    path = await opened(tmp_path, gateway=Decimal("2.5"))
    update_state(path, lambda old: with_reading(old, EPOCH + timedelta(minutes=5), Decimal("512.5"), "meter",
                                                billed=Decimal(9000)))  # fmt: skip
    (path.parent / "r9.spawn.json").write_text('{"name": "r9", "calls": {"trial-0": "fc-1"}, "bound_usd": 30.25}')
    standing = read_standing(path, EPOCH + timedelta(minutes=15))
    value = standing.to_json()
    assert (value["spent_usd"], value["committed_usd"], value["headroom_usd"]) == ("12.5", "30.25", "47.25")
    assert (value["reading_age_s"], value["reading_is_fresh"], value["alarm"]) == (600, True, True)
    assert {"name": "r9", "usd": "30.25"} in value["parts"]
    text = "\n".join(standing.lines())
    for line in ("session night: simulated money", "- spent $12.50 (baseline $500.00, metered $512.50)", "- r9 $30.25",
                 "= headroom $47.25", "600 s ago", "!!! billed is far above metered: metered $512.5, billed $9000",
                 "AI gateway $0.00 of $2.50"):  # fmt: skip
        assert line in text
    assert not read_standing(path, EPOCH + timedelta(minutes=21)).is_fresh
    assert "ahead of this machine's clock" in "\n".join(read_standing(path, EPOCH).lines())


async def test_work_whose_bound_nobody_knows_leaves_the_headroom_unknown(tmp_path: Path) -> None:
    path = await opened(tmp_path)
    (path.parent / "r9.spawn.json").write_text('{"name": "r9", "calls": {"trial-0": "fc-1"}}')
    standing = read_standing(path, EPOCH)
    assert standing.to_json()["headroom_usd"] is None and "= headroom unknown" in "\n".join(standing.lines())


async def test_the_only_open_session_is_meant_and_of_several_one_must_be_named(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with pytest.raises(NotFound, match=r"kev\.session open NAME"):
        find_state(runs, None)
    first = await opened(tmp_path)
    assert find_state(runs, None) == first
    second = await opened(tmp_path, name="day")
    with pytest.raises(UsageError, match="several sessions are open; name one with --session: day, night"):
        find_state(runs, None)
    update_state(first, lambda old: old.model_copy(update={"closed_at": "2026-12-01T08:00:00Z"}))
    assert find_state(runs, None) == second
    assert find_state(runs, "night") == first
    update_state(second, lambda old: old.model_copy(update={"closed_at": "2026-12-01T08:00:00Z"}))
    with pytest.raises(UsageError, match="several sessions are closed"):
        find_state(runs, None)


async def test_a_session_that_cannot_be_read_counts_as_open(tmp_path: Path) -> None:
    await opened(tmp_path)
    (tmp_path / "runs" / "dusk-state.json").write_bytes(b"")
    with pytest.raises(UsageError, match="dusk, night"):
        find_state(tmp_path / "runs", None)
    with pytest.raises(DamagedFile, match="empty"):
        read_standing(find_state(tmp_path / "runs", "dusk"), EPOCH)


def test_show_prints_one_object_or_a_sum_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    asyncio.run(opened(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["show", "--root", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["session"] == "night"
    assert main(["show", "--root", str(tmp_path)]) == 0
    assert "= headroom $90.00" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert main(["show", "--root", str(tmp_path), "--session", "other"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("amount", ["0", "-5", "nan", "inf", "much", ""])
def test_an_authorization_is_an_amount_above_zero(amount: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(["open", "night", f"--authorization={amount}"])
    assert caught.value.code == 2 and "write an amount of US dollars" in capsys.readouterr().err
