"""A round is appended once, whole or not at all, and says what the files of its run say."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journals import MadeUpRun, three_rounds

from kev.autorl.__main__ import main
from kev.autorl.journal.compose import Order
from kev.autorl.journal.lines import KEYS
from kev.autorl.journal.section import LABELS, read_journal
from kev.errors import Refused, UsageError

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nImportError: no trl\n'
PROSE = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)


def test_rounds_that_are_composed_check_clean_and_say_what_the_files_say(tmp_path: Path) -> None:
    run = three_rounds(tmp_path / "run")
    assert run.findings() == []
    assert run.summary.startswith("# 运行总结\n\n## Iteration 1 (2027-02-03 ")
    sections = read_journal(run.summary).sections
    assert [tuple(each.fields) for each in sections] == [LABELS] * 3
    assert [each.score_texts for each in sections] == [
        ("31.25", "29.75", "31.25"), ("28.125", "26.625", "31.25"), ("96.875", "95.375", "96.875"),
    ]  # fmt: skip
    assert [each.score_facts and each.score_facts.best_iteration for each in sections] == [1, 1, 3]
    assert sections[0].text("关键配置") == "lr=0.0004, batch=64, max_steps=100, beta=0.0"
    assert "Iteration 1 score=31.25" in sections[1].text("为什么")
    assert "time_to_first_improvement=60.25s" in sections[2].text("问题/进步")
    assert sections[2].text("代码片段（上下文）") == "与 Iteration 1 相同，无变更"
    assert [tuple(line) for line in run.lines] == [KEYS] * 3
    assert [(line["iteration"], line["score"], line["train_type"]) for line in run.lines] == [
        (1, 31.25, "GRPO"), (2, 28.125, "GRPO"), (3, 96.875, "GRPO"),
    ]  # fmt: skip


def test_the_same_order_again_writes_nothing_however_it_names_its_round(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.submit(31.25)
    assert run.append() == 1
    before = run.summary, run.lines
    assert [run.append(), run.append(submission=1), run.append(iteration=1), run.append(submission=1, what="x")] == [
        1
    ] * 4
    assert (run.summary, run.lines) == before
    run.submit(31.25)
    assert run.append() == 2


def test_a_submission_that_is_told_of_after_a_later_one_has_a_round_of_its_own(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    for score in (60.0, 50.0, 40.0):
        run.submit(score)
    assert [run.append(submission=number) for number in (2, 1, 3, 1)] == [1, 2, 3, 2]
    said = [section.text("Score") for section in read_journal(run.summary).sections]
    assert [each.partition(" | ")[0] for each in said] == ["50.0", "60.0", "40.0"] and run.findings() == []
    assert all(each.endswith("Best: 60.0 (iter 1)") for each in said)


@pytest.mark.parametrize("failed", [False, True])
def test_a_kill_at_any_byte_loses_no_round_and_doubles_none(tmp_path: Path, failed: bool) -> None:
    run = three_rounds(tmp_path / "run")
    reports = run.workspace.reports
    if failed:
        run.workspace.agent_log.write_text(TRACE)
        run.append(exit_code=1, what="last")
    whole = {name: (reports / name).read_bytes() for name in ("summary.md", "summary.jsonl", ".journal.jsonl")}
    last = whole["summary.md"].rindex(b"\n\n## Iteration") + 1
    line = whole["summary.jsonl"].rindex(b"\n", 0, -1) + 1
    seal = whole[".journal.jsonl"].rindex(b"\n", 0, -1) + 1
    order: dict[str, object] = {"exit_code": 1, "what": "last"} if failed else {
        "submission": 3, "what": "a round of GRPO", "why": "the reward moves",
    }  # fmt: skip
    ends = len(whole["summary.md"]), len(whole["summary.jsonl"]), len(whole[".journal.jsonl"])
    cuts = [(at, line, ends[2]) for at in range(last, ends[0], 37)]
    cuts += [(ends[0], at, ends[2]) for at in range(line, ends[1], 41)]
    cuts += [(last, line, at) for at in range(seal, ends[2], 211)]
    for summary, jsonl, sealed in cuts:
        (reports / "summary.md").write_bytes(whole["summary.md"][:summary])
        (reports / "summary.jsonl").write_bytes(whole["summary.jsonl"][:jsonl])
        (reports / ".journal.jsonl").write_bytes(whole[".journal.jsonl"][:sealed])
        assert run.append(**order) == (4 if failed else 3)
        assert (reports / "summary.md").read_bytes() == whole["summary.md"]
        assert (reports / "summary.jsonl").read_bytes() == whole["summary.jsonl"]
    assert run.findings() == []


def test_a_first_round_that_a_kill_cut_short_is_finished_with_its_title(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.append(submission=run.submit(31.25))
    whole = run.workspace.summary.read_bytes()
    for cut in range(0, len(whole), 61):
        run.workspace.summary.write_bytes(whole[:cut])
        assert run.append(submission=1) == 1 and run.workspace.summary.read_bytes() == whole


def test_what_others_wrote_between_two_rounds_stays_and_gets_its_line_end(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.append(submission=run.submit(31.25))
    with run.workspace.summary.open("a") as stream:
        stream.write("a thought of mine, without an end")
    run.append(submission=run.submit(40.0))
    assert "a thought of mine, without an end\n\n## Iteration 2" in run.summary and run.findings() == []


WRITER = """
import sys
from pathlib import Path
from kev.autorl.journal.compose import Order
from kev.autorl.journal.writing import append_round
from kev.autorl.workspace import Workspace
from kev.clock import SystemClock
for number in map(int, sys.argv[2:]):
    append_round(Workspace(Path(sys.argv[1])), Order(submission=number), SystemClock())
"""


def test_writers_at_once_write_each_round_once_and_none_into_another(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    for score in (10.0, 20.0, 30.0, 40.0):
        run.submit(score)
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(run.workspace.directory), *map(str, numbers)])
        for numbers in ([1, 3, 3], [2, 4, 1])
    ]
    assert [each.wait(60) for each in started] == [0, 0]
    assert [line["iteration"] for line in run.lines] == [1, 2, 3, 4] and run.findings() == []
    assert sorted(str(line["score"]) for line in run.lines) == ["10.0", "20.0", "30.0", "40.0"]


def test_a_failure_says_its_type_and_what_shows_it_and_a_second_one_that_nothing_is_new(
    tmp_path: Path,
) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.workspace.agent_log.write_text("loading\n" + TRACE)
    run.append(exit_code=1, what="first")
    run.workspace.agent_log.write_text("loading\n" + TRACE + "again\n" + TRACE)
    run.append(exit_code=1, what="second")
    run.append(submission=run.submit(50.0))
    assert [(line["status"], line["exit_code"], line["failure_type"]) for line in run.lines] == [
        ("failure", 1, "code_error_runtime"), ("failure", 1, "code_error_runtime"), ("success", None, "unknown"),
    ]  # fmt: skip
    first, second, _ = read_journal(run.summary).sections
    assert "(agent.log:4: ImportError: no trl)" in first.text("问题/进步")
    assert "(agent.log:8: ImportError: no trl)" in second.text("问题/进步") and "无新增" in second.text("问题/进步")
    assert run.findings() == []


def test_a_round_without_a_finite_score_and_one_that_ended_badly_say_where_that_shows(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.append(submission=run.submit(31.25))
    run.submit(float("nan"))
    run.append()
    run.workspace.agent_log.write_text("killed by the keeper\n\n")
    run.append(exit_code=137)
    run.append(exit_code=3)
    said = [section.text("问题/进步") for section in read_journal(run.summary).sections[1:]]
    assert "(scores.json: submission 2 has no score that is a finite number)" in said[0]
    assert "(agent.log:1: killed by the keeper)" in said[1] and "(process: exit code 3)" in said[2]
    assert [(line["status"], line["score"]) for line in run.lines[1:]] == [("failure", None)] * 3
    assert run.findings() == []


def test_rounds_on_both_sides_of_the_hour_that_a_clock_repeats_are_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    run = MadeUpRun(tmp_path / "run")
    run.clock.wall = datetime(2027, 10, 31, 0, 58, tzinfo=UTC)  # 02:58, and two minutes later 02:00 again
    run.began = int(run.clock.wall.timestamp())
    run.note(timeout_s=9000)
    for score in (31.25, 28.125, 96.875):
        run.append(submission=run.submit(score))
        run.clock.pass_time(60)
    monkeypatch.undo()
    time.tzset()
    sections = read_journal(run.summary).sections
    assert [each.time[-5:] for each in sections] == ["02:59", "02:01", "02:03"]
    assert [each.duration for each in sections] == [61, 183, 304] and run.findings() == []


def test_a_copy_of_the_base_is_a_failure_of_its_own_type(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run", script="import shutil\nshutil.copytree('a', 'b')\n")
    run.append(submission=run.submit(1.5, label="no change"))
    (line,) = run.lines
    assert "shutil.copytree('a', 'b')" in read_journal(run.summary).sections[0].text("关键代码")
    assert (line["train_type"], line["failure_type"], line["improvement"]) == ("copy_model", "copy_model_fallback", 0.0)
    assert run.findings() == []


def test_a_round_that_cannot_be_right_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    with pytest.raises(Refused, match="no submission 1"):
        run.append(submission=1)
    run.submit(31.25)
    with pytest.raises(Refused, match="the next round is 1"):
        run.append(iteration=2)
    assert not run.workspace.summary.exists()
    run.append()
    run.workspace.summary.write_text(run.summary.replace("Iteration 1", "Iteration 3"))
    run.submit(40.0)
    with pytest.raises(Refused, match="journal repair"):
        run.append()
    run.workspace.summary.unlink()
    run.workspace.summary.symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(Refused, match="a link"):
        run.append()
    assert not (tmp_path / "elsewhere.md").exists()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prose=st.lists(PROSE, min_size=5, max_size=5))
def test_no_prose_breaks_a_journal(tmp_path_factory: pytest.TempPathFactory, prose: list[str]) -> None:
    run = MadeUpRun(tmp_path_factory.mktemp("prose") / "run")
    names = ("what", "why", "progress", "code", "snippet")
    run.append(submission=run.submit(31.25), **dict(zip(names, prose, strict=True)))
    run.append(
        submission=run.submit(40.0), what="## Iteration 9 (2027-01-01 00:00, 耗时 1s)\n- **状态**: ❌", snippet="```\nx"
    )
    assert run.findings() == [] and len(read_journal(run.summary).sections) == 2


def test_the_command_takes_prose_from_flags_and_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.submit(31.25)
    monkeypatch.setenv("WORKSPACE", str(run.workspace.directory))
    assert main(["journal", "append", "--submission", "1", "--what", "说明", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"iteration": 1, "changed": True, "others": []}
    again = [sys.executable, "-m", "kev.autorl", "journal", "append", "--stdin", "--lang", "zh"]
    done = subprocess.run(again, input=json.dumps({"submission": 1}), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "Iteration 1 已存在\n")
    assert read_journal(run.summary).sections[0].text("做了什么") == "说明"


def test_an_order_of_wrong_keys_or_types_is_refused_by_its_key() -> None:
    for value, words in (
        ([], "object"),
        ({"wat": "x"}, "wat"),
        ({"submission": "1"}, "submission"),
        ({"why": 1}, "why"),
    ):
        with pytest.raises(UsageError, match=words):
            Order.from_json(value)
