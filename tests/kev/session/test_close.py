"""A session is closed when everything of it is settled, and its summary and its rounds' rows stand in the plan."""

import json
from pathlib import Path

import pytest
from fake_compute import Plan
from hypothesis import given
from hypothesis import strategies as st
from round_lab import RoundLab

from kev.errors import DamagedFile, KevError, Refused
from kev.files import locked
from kev.rounds.launch import launch
from kev.rounds.watching.loop import watch, watcher_lock
from kev.session import read_session
from kev.session.__main__ import main
from kev.session.close import close_session
from kev.session.plan_document import update_plan, with_session
from kev.session_report import SessionReport, build_report, read_records

SPEC = "experiments/rounds/r201.json"


async def away(_: str) -> str:
    return "unavailable"


async def test_what_is_unsettled_keeps_a_session_open_and_is_named_with_its_command(round_lab: RoundLab) -> None:
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    before = (round_lab.root / "PLAN.md").read_bytes()
    with pytest.raises(
        Refused, match=r"not everything is settled: trial/r201.* \(running\): python -m kev\.rounds watch"
    ):
        await close_session(round_lab.gate, round_lab.root)
    assert read_session(round_lab.state).closed_at is None
    assert (round_lab.root / "PLAN.md").read_bytes() == before


async def test_a_running_watcher_keeps_a_session_open(round_lab: RoundLab) -> None:
    with locked(watcher_lock(round_lab.state)), pytest.raises(Refused, match="its watcher runs"):
        await close_session(round_lab.gate, round_lab.root)


async def test_closed_by_force_it_says_why_starts_nothing_more_and_names_what_is_left(round_lab: RoundLab) -> None:
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    report = await close_session(round_lab.gate, round_lab.root, force=True, reason="the lab moves")
    assert len(report.pending) == 2 and report.closed_at == round_lab.clock.now()
    state = json.loads(round_lab.state.read_text())
    assert state["closed_reason"] == "the lab moves"
    assert "Finish it: `python -m kev.rounds watch" in (round_lab.root / "PLAN.md").read_text()
    unit = next(iter(round_lab.gate.ledger.read().by_id.values()))
    with pytest.raises(Refused, match="the session was closed at"):
        await round_lab.new_gate().reserve("more", [("trial/r9/trial-0", unit.order.model_copy(update={"name": "r9"}))])


async def test_a_round_that_was_seen_through_closes_with_its_summary_and_its_row(round_lab: RoundLab) -> None:
    round_lab.compute.plan = lambda *_: Plan(seconds=600)
    round_lab.compute.volume["r201-blend/2b-w50/interpolation.json"] = b"x"
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    await watch(round_lab.engine(), round_lab.loaded, lambda _: True, interval_s=600, stagger_s=0)
    round_lab.clock.time += 7200
    report = await close_session(round_lab.gate, round_lab.root)
    assert report.pending == () and report.money.spent is not None and report.money.spent > 0
    text = (round_lab.root / "PLAN.md").read_text()
    assert "## Session night (simulated money)" in text and "| 201 | " in text
    assert text.startswith("# Plan\n\n## Round 201\n\nDoes it help?\n")
    await close_session(round_lab.gate, round_lab.root)
    again = (round_lab.root / "PLAN.md").read_text()
    assert again.count("## Session night") == 1 and again.count("| 201 | ") == 1


async def test_without_a_last_reading_it_stays_open_unless_forced(round_lab: RoundLab) -> None:
    await round_lab.gate.read_meter()
    round_lab.compute.point = away
    round_lab.clock.time += 3600
    with pytest.raises(Refused, match="the last reading cannot be made"):
        await close_session(round_lab.gate, round_lab.root)
    report = await close_session(round_lab.gate, round_lab.root, force=True, reason="no network")
    assert report.money.age_s == 3600


def test_line_ends_of_two_kinds_stay_as_they_are_and_no_section_is_written_twice(round_lab: RoundLab) -> None:
    report = report_of(round_lab)
    text = "# Plan\r\n\nby hand\n\r\n## Record\r\n\r\n| round | a |\n| --- | --- |\r\n| 200 | x |\r\nlast"
    once = with_session(text, report)
    assert with_session(once, report) == once
    assert (once.count("## Record"), once.count("## Session"), once.count("| 201 |")) == (1, 1, 1)
    for kept in ("# Plan\r\n", "by hand\n", "| round | a |\n", "| --- | --- |\r\n", "| 200 | x |\r\n"):
        assert kept in once
    assert once.endswith("\nlast") and "| 201 |" in once.split("\r\n")[-2]


def test_force_needs_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["close", "--root", str(tmp_path), "--force"]) == 1
    assert "--force needs --reason" in capsys.readouterr().err


def test_a_round_keeps_its_registration_whatever_summaries_say_of_it(round_lab: RoundLab) -> None:
    from kev.rounds.registration import find_section

    report = report_of(round_lab)
    before = (round_lab.root / "PLAN.md").read_text()
    after = with_session(with_session(before, report), report)
    assert find_section(after, 201) == find_section(before, 201)


def report_of(lab: RoundLab) -> SessionReport:
    lab.state.write_text(json.dumps(json.loads(lab.state.read_text()) | {"rounds": [SPEC]}))
    now = lab.clock.now()
    return build_report(read_records(lab.root, lab.state, now), now)


LINES = st.sampled_from([
    "# Plan", "## Round 201", "text", "", "## Record", "| round | a | b | c | d |", "| --- | --- | --- | --- | --- |",
    "| 200 | x | – | – | – |", "```", "## Session dusk", "### Money",
])  # fmt: skip


@pytest.fixture(scope="session")
def one_report(prepared_round: Path, tmp_path_factory: pytest.TempPathFactory) -> SessionReport:
    return report_of(RoundLab.copy_of(prepared_round, tmp_path_factory.mktemp("one") / "checkout"))


@given(lines=st.lists(LINES, max_size=25), ending=st.sampled_from(["\n", "\r\n"]))
def test_nothing_of_the_plan_is_lost_and_writing_twice_is_writing_once(
    one_report: SessionReport, lines: list[str], ending: str
) -> None:
    text = ending.join(lines)
    once = with_session(text, one_report)
    assert with_session(once, one_report) == once
    kept = iter(once.split(ending if ending in text else "\n"))
    for line in lines:
        if line:
            assert any(line == other for other in kept), f"{line!r} is gone, or is elsewhere"


async def test_a_plan_that_is_not_text_is_not_written_over(round_lab: RoundLab) -> None:
    (round_lab.root / "PLAN.md").write_bytes(b"\xff\xfe# Plan")
    with pytest.raises(KevError, match="not UTF-8"):
        await close_session(round_lab.gate, round_lab.root)
    assert (round_lab.root / "PLAN.md").read_bytes() == b"\xff\xfe# Plan"


@pytest.mark.parametrize("left", [b"", b"\n", b"\0" * 900, "# Plan\n".encode("utf-16"), "# Plan\n".encode("utf-16-le")])
def test_a_plan_that_a_crash_left_empty_is_not_taken_for_a_new_one(round_lab: RoundLab, left: bytes) -> None:
    path = round_lab.root / "PLAN.md"
    path.write_bytes(left)
    with pytest.raises(DamagedFile, match=r"empty, as after a write|UTF-16|not UTF-8"):
        update_plan(round_lab.root, report_of(round_lab))
    assert path.read_bytes() == left
