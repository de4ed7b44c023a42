"""A report says what was spent, what is pending and finishes how, what came out of what, and what is next."""

import json
from decimal import Decimal
from typing import Any

from checkouts import git
from round_lab import RoundLab

from kev.rounds.launch import launch
from kev.session_report import SessionReport, build_report, read_records, to_markdown

SPEC = "experiments/rounds/r201.json"


def report_of(lab: RoundLab) -> SessionReport:
    now = lab.clock.now()
    return build_report(read_records(lab.root, lab.state, now), now)


def write_readout(lab: RoundLab, **arms: dict[str, Any]) -> None:
    figures = {"acc": {"candidate": 0.75, "parent": 0.5, "delta": 0.25, "ci95": [0.125, 0.375]}}
    comparison = {
        "trial": "runs/r201-full/00-trial-0", "parent": "runs/p2b/00-trial-0", "temperature": 1.25,
        "temperature_source": {"kind": "pool", "reads": ["runs/r201-held"], "questions": 48},
        "panels": {"street": {"n": 96, **figures}}, "criteria": {"1_gain": True}, "missing": [], "complete": True,
        "passed": True,
    }  # fmt: skip
    value = {"round": 201, "arms": {name: comparison | changes for name, changes in arms.items()},
             "candidates": {"2b": next(iter(arms))}}  # fmt: skip
    place = lab.runs / "r201-readout"
    place.mkdir()
    (place / "round201.json").write_text(json.dumps(value))


async def test_what_is_pending_names_its_bound_and_the_command_that_finishes_it(round_lab: RoundLab) -> None:
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    report = report_of(round_lab)
    names = {each.name: each for each in report.pending}
    assert len(names) == 2 and all(name.startswith("trial/r201-") for name in names)
    for each in names.values():
        assert each.call is not None and each.state == "running" and each.usd is not None and each.usd > 0
        assert each.command == f"python -m kev.rounds watch {SPEC} --session night --detach"
    reserved = next(row.usd for row in report.money.running if row.name == "running or reserved")
    assert sum((each.usd for each in report.pending if each.usd), Decimal(0)) == reserved
    assert [step.command for step in report.next_steps] == [report.pending[0].command]
    text = to_markdown(report)
    assert f"Finish it: `{report.pending[0].command}`" in text and "(simulated money)" in text


def test_what_another_tool_started_is_pending_as_well(round_lab: RoundLab) -> None:
    (round_lab.runs / "r9.spawn.json").write_text('{"name": "r9", "calls": {"trial-0": "fc-1"}, "bound_usd": 30.25}')
    (pending,) = report_of(round_lab).pending
    assert (pending.name, pending.usd, pending.command) == (
        "r9", Decimal("30.25"), "modal run modal_app.py::pull --name r9",
    )  # fmt: skip


def test_a_figure_carries_suite_split_n_checkpoint_temperature_and_report(round_lab: RoundLab) -> None:
    spec = round_lab.loaded.spec
    arm = next(iter(spec.arms))
    panel, registered = next(iter(spec.rule.panels.items()))
    write_readout(round_lab, **{arm: {"panels": {panel: {"n": 96, "acc": {"candidate": 0.75, "parent": 0.5}}}}})
    text = round_lab.state.read_text()
    round_lab.state.write_text(json.dumps(json.loads(text) | {"rounds": [SPEC]}))
    report = report_of(round_lab)
    (result,) = report.rounds
    assert (result.arms_tried, result.arms_read) == (len(spec.arms), 1)
    (shown,) = result.arms
    assert shown.checkpoint == "/runs/r201-full/00-trial-0/checkpoint" and shown.temperature == 1.25
    assert shown.temperature_source == "pool (runs/r201-held, 48 questions)"
    part = shown.panels[0].reads[0]
    assert part.suite == spec.reads[registered.reads[0]].suite and part.split in ("development", "calibration", "test")
    assert part.report is not None and part.report.endswith("/report.json")
    row = next(line for line in to_markdown(report).splitlines() if line.startswith(f"| {panel} | 96 |"))
    assert part.suite in row and "| 0.7500 | 0.5000 |" in row and part.report in row


def test_a_candidate_without_a_verdict_is_confirmed_next_and_by_hand(round_lab: RoundLab) -> None:
    spec = round_lab.loaded.spec
    arm, stage = next(iter(spec.arms)), next(iter(spec.confirm))
    round_lab.state.write_text(json.dumps(json.loads(round_lab.state.read_text()) | {"rounds": [SPEC]}))
    write_readout(round_lab, **{arm: {}})
    step = report_of(round_lab).next_steps[0]
    assert step.command == (
        f"python -m kev.rounds launch-reads {SPEC} --stage {stage} --arm {arm} --session night && "
        f"python -m kev.rounds confirm {SPEC} --stage {stage} --arm {arm}"
    )
    assert "1 of 1 criteria hold" in step.evidence


async def test_there_are_at_most_three_next_steps(round_lab: RoundLab) -> None:
    await launch(round_lab.engine(), round_lab.loaded, stagger_s=0)
    for name in ("r8", "r9", "r10"):
        (round_lab.runs / f"{name}.spawn.json").write_text(json.dumps(
            {"name": name, "calls": {"trial-0": "fc-1"}, "bound_usd": 1}))  # fmt: skip
    assert len(report_of(round_lab).next_steps) == 3


async def test_an_incident_is_told_once_with_how_often_it_happened(round_lab: RoundLab) -> None:
    gate = round_lab.new_gate()
    for _ in range(3):
        gate.note("refused", "no | money", subject="x", severity="warning")
        round_lab.clock.time += 60
    gate.note("launch", "fine")
    (incident,) = report_of(round_lab).incidents
    assert incident.times == 3 and incident.first is not None and incident.last is not None
    assert (incident.last - incident.first).total_seconds() == 120
    assert "no \\| money (3 times" in to_markdown(report_of(round_lab))


def test_one_damaged_file_hides_nothing_else_and_is_named(round_lab: RoundLab) -> None:
    round_lab.state.write_text(json.dumps(json.loads(round_lab.state.read_text()) | {"rounds": [SPEC, "r9.json"]}))
    (round_lab.runs / "r201-readout").mkdir()
    (round_lab.runs / "r201-readout" / "round201.json").write_text("{")
    (round_lab.runs / "night-events.jsonl").write_text("{\n")
    report = report_of(round_lab)
    assert len(report.rounds) == 1 and report.rounds[0].readout is None
    assert [name for name in ("r9.json", "round201.json", "line 1") if not any(name in each for each in report.findings)
            ] == []  # fmt: skip
    assert "could not be believed" in to_markdown(report)


def test_a_report_is_json_and_depends_on_nothing_but_its_records(round_lab: RoundLab) -> None:
    round_lab.state.write_text(json.dumps(json.loads(round_lab.state.read_text()) | {"rounds": [SPEC]}))
    write_readout(round_lab, **{next(iter(round_lab.loaded.spec.arms)): {}})
    now = round_lab.clock.now()
    records = read_records(round_lab.root, round_lab.state, now)
    one, other = (json.dumps(build_report(records, now).to_json(), allow_nan=False) for _ in range(2))
    assert one == other and json.loads(one)["money"]["authorization"] == "200"
    assert git(round_lab.root, "status", "--porcelain", "PLAN.md") == ""
