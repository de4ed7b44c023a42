"""Every breach of the ten rules is found, with its line, what is stated there and what the machine has."""

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journals import MadeUpRun, three_rounds

from kev.autorl.__main__ import main
from kev.autorl.journal.checking import check_journal
from kev.autorl.journal.facts import Facts, read_facts
from kev.autorl.journal.findings import MESSAGES, Finding
from kev.autorl.journal.written import Written, read_written

TITLE = "# 运行总结\n"
BY_HAND = (
    TITLE
    + """
## Iteration 1（2027-02-03 04:06，耗时 70秒）
* **状态**：✅ 成功（exit_code＝0）
* **Score：** 31.3 ｜ Improvement：＋29.8 ｜ Best：31.3（iter 1）
* **训练类型**：GRPO
* **关键配置**：learning_rate＝4e-4，batch=64
* **做了什么**：第一轮
* **为什么**：从基线开始
* **问题／进步**：valid_submission_rate＝100%，time_to_first_improvement：60s
* **关键代码**：x = 1
* **代码片段(上下文)**：train.py L1-L9
"""
)
LINE = {
    "iteration": 1, "timestamp": "2027-02-03 04:06", "duration_s": 70, "status": "success", "exit_code": 0,
    "score": 31.25, "improvement": 29.75, "train_type": "GRPO", "failure_type": "unknown",
}  # fmt: skip
LOST = (
    "## Iteration 4 (2027-02-03 04:05, 耗时 99s) - **状态**: ✅ 成功 (exit_code0) - **Score**: 31.5 | Improvement: 2.5"
    " | Best: 33.0 (iter 6) - **训练类型**: SFT - **关键配置**: lr3e-5 - **做了什么**: a - **为什么**: run.log"
    " - **问题/进步**: valid_submission_rate1.02/2 - **关键代码**: d - **代码片段上下文**: train.py"
)
DIGITS = re.compile(r"\d")
MACHINE = re.compile(r"## Iteration|- \*\*(状态|Score|训练类型|关键配置|问题/进步)\*\*|\{")
"""Lines of a composed journal that hold nothing but what the machine says, where no prose was passed in."""


def check(run: MadeUpRun, text: str, *lines: dict[str, object]) -> list[Finding]:
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return check_journal(Written(text.encode(), data), read_facts(run.workspace, run.clock))


@pytest.fixture
def run(tmp_path: Path) -> MadeUpRun:
    made = MadeUpRun(tmp_path / "run")
    made.submit(31.25)
    made.clock.pass_time(30)
    return made


def test_a_journal_written_by_hand_with_full_width_signs_and_rounded_figures_is_clean(run: MadeUpRun) -> None:
    assert check(run, BY_HAND, LINE) == []


def test_a_best_from_a_later_round_is_found_though_line_breaks_and_signs_were_lost() -> None:
    found = {each.code: each for each in check_journal(Written(LOST.encode()), Facts())}
    assert found.keys() == {"best_later", "line_breaks", "sequence", "title", "no_lines"}
    best = found["best_later"]
    assert (best.line, best.stated, best.machine) == (1, "33 (iter 6)", "31.5 (iter 4)")
    assert best.words() == ("summary.md:1: fact: a best from a later round; stated 33 (iter 6); machine 31.5 (iter 4)")
    assert best.words("zh") == "summary.md:1: 事实: Best 来自更晚的迭代; 写的是 33 (iter 6); 机器值 31.5 (iter 4)"


CHANGES: dict[str, tuple[str, str, int]] = {
    "invented": ("31.3 ｜ Imp", "45.0 ｜ Imp", 5),
    "improvement": ("＋29.8", "20", 5),
    "best": ("Best：31.3（iter 1）", "Best：60（iter 1）", 5),
    "best_later": ("（iter 1）", "（iter 2）", 5),
    "not_finite": ("31.3 ｜ Imp", "nan ｜ Imp", 5),
    "score_line": ("Best：31.3（iter 1）", "", 5),
    "status": ("exit_code＝0", "exit_code＝7", 4),
    "type": ("GRPO", "DPO", 6),
    "type_source": ("GRPO", "SFT", 6),
    "setting": ("4e-4", "3e-4", 7),
    "missing": ("第一轮", "", 8),
    "metric": ("valid_submission_rate＝100%，time_to_first_improvement：60s", "变好了", 10),
    "metric_value": ("100%", "50%", 10),
    "duration": ("耗时 70秒", "耗时 700秒", 3),
    "time": ("2027-02-03 04:06", "2027-02-31 04:06", 3),
    "sequence": ("Iteration 1", "Iteration 2", 3),
    "heading": ("## Iteration 1（2027-02-03 04:06，耗时 70秒）", "## Iteration 1", 3),
    "repeated": ("* **关键代码**：x = 1", "* **做了什么**：x = 1", 8),
    "order": ("* **状态**：✅ 成功（exit_code＝0）\n", "* **关键代码**：x\n* **状态**：✅ 成功（exit_code＝0）\n", 3),
    "snippet": ("train.py L1-L9", "train.py\n```\n" + "x\n" * 41 + "```", 12),
    "key_code": ("x = 1", "\n```\n" + "x\n" * 6 + "```", 11),
    "same_as": ("train.py L1-L9", "与 Iteration 1 相同，无变更", 12),
    "title": (TITLE, "", 1),
    "encoding": ("第一轮\n", "第一轮\r\n", 8),
    "no_failure_type": ("✅ 成功（exit_code＝0）", "❌ 失败（exit_code＝1）", 10),
    "no_cause": ("✅ 成功（exit_code＝0）", "❌ 失败（exit_code＝1）", 10),
    "failure_type": ("valid_submission_rate＝100%", "failure_type=bad_luck", 10),
}


@pytest.mark.parametrize("code", CHANGES)
def test_one_change_is_one_finding_on_its_line(run: MadeUpRun, code: str) -> None:
    old, new, line = CHANGES[code]
    assert old in BY_HAND
    found = check(run, BY_HAND.replace(old, new, 1), LINE)
    assert (code, line) in {(each.code, each.line) for each in found}, [each.words() for each in found]


def test_a_round_without_evidence_and_a_failure_without_news_are_found(run: MadeUpRun) -> None:
    failed = BY_HAND.replace("✅ 成功（exit_code＝0）", "❌ 失败（exit_code＝1）").replace(
        "valid_submission_rate＝100%", "failure_type=code_error_runtime ImportError"
    )
    second = failed.replace(TITLE, "").replace("Iteration 1", "Iteration 2")
    lines = [
        {**LINE, "status": "failure", "exit_code": 1, "failure_type": "code_error_runtime", "iteration": n}
        for n in (1, 2)
    ]
    found = {(each.code, each.line): each for each in check(run, failed + second, *lines)}
    assert found.keys() == {("evidence", 20), ("repeat", 21)}
    better = second.replace("从基线开始", "agent.log 显示缺少依赖").replace(
        "ImportError", "ImportError 新增尝试：改用 trl"
    )
    assert check(run, failed + better, *lines) == []


def test_lines_are_held_against_sections_and_damage_is_named(run: MadeUpRun) -> None:
    def codes(*lines: str) -> set[tuple[str, int | None]]:
        data = "\n".join(lines).encode()
        found = check_journal(Written(BY_HAND.encode(), data), read_facts(run.workspace, run.clock))
        return {(each.code, each.line) for each in found}

    good = json.dumps(LINE)
    assert codes(good) == set()
    assert codes(good, good) == {("line_repeated", 2)}
    assert codes() == {("line_missing", 3)}
    assert codes(good, json.dumps({**LINE, "iteration": 2})) == {("line_extra", 2)}
    assert codes(json.dumps({**LINE, "why": "a reason"})) == {("line_keys", 1)}
    assert codes(good + good) == {("line_damaged", 1), ("line_missing", 3)}
    assert codes(good.replace("31.25", "NaN")) == {("line_damaged", 1), ("line_missing", 3)}
    for key in LINE.keys() - {"iteration"}:
        value = {"status": "failure", "timestamp": "x", "train_type": "SFT", "failure_type": "training_diverged"}.get(
            key, 77
        )
        found = codes(json.dumps({**LINE, key: value}))
        # A success states no failure type in its section, so there is nothing to hold the line's against.
        assert found == (set() if key == "failure_type" else {("line_differs", 1)}), key


def test_a_copy_that_is_told_as_a_success_is_found_by_the_label_of_the_grader(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.submit(31.25, label="no change")
    found = [each for each in check(run, BY_HAND, LINE) if each.code == "failure_type"]
    assert found and "copy_model_fallback" in found[0].machine


def test_the_exit_code_of_a_round_written_after_the_end_is_that_of_the_log(run: MadeUpRun) -> None:
    with run.workspace.run_log.open("a") as stream:
        stream.write("2027-02-03 04:06:00 | ERROR | the agent ended with exit_code=9 after 60 s\n")
    (found,) = check(run, BY_HAND, LINE)
    assert (found.code, found.stated, found.machine) == ("exit_code", "0", "9 (run.log:2)")


def test_settings_of_a_round_before_the_source_was_changed_are_not_held_against_it(run: MadeUpRun) -> None:
    run.submit(40.0)
    first = BY_HAND.replace("learning_rate＝4e-4", "learning_rate＝1e-3")
    second = (
        BY_HAND.replace(TITLE, "").replace("Iteration 1", "Iteration 2").replace("从基线开始", "scores.json")
        .replace("31.3 ｜ Improvement：＋29.8 ｜ Best：31.3（iter 1）", "40 ｜ Improvement：38.5 ｜ Best：40（iter 2）")
        .replace("耗时 70秒", "耗时 150秒")
    )  # fmt: skip
    changed = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
    os.utime(run.workspace.code / "train.py", (changed, changed))
    lines = [LINE, {**LINE, "iteration": 2, "score": 40.0, "improvement": 38.5, "duration_s": 150}]
    assert check(run, first + second, *lines) == []
    unchanged = second.replace("train.py L1-L9", "与 Iteration 1 相同，无变更")
    assert [(each.code, each.line) for each in check(run, first + unchanged, *lines)] == [("setting", 7)]


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> MadeUpRun:
    made = MadeUpRun(tmp_path_factory.mktemp("composed") / "run")
    for score in (31.25, 28.125, 96.875):
        made.append(submission=made.submit(score, label="gain"))
    made.workspace.agent_log.write_text("{'loss': 0.5}\n{'loss': nan}\n")
    made.append(exit_code=1)
    return made


@pytest.mark.parametrize("sealed", [True, False])
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_digit_of_a_machine_value_that_is_changed_is_found(
    composed: MadeUpRun, sealed: bool, data: st.DataObject
) -> None:
    written = read_written(composed.workspace.reports)
    assert written.summary is not None and written.lines is not None
    facts = read_facts(composed.workspace, composed.clock)
    seals = written.seals if sealed else ()
    assert check_journal(Written(written.summary, written.lines, seals), facts) == []
    whole = [line.decode() for line in (written.summary + written.lines).split(b"\n")]
    place = data.draw(st.sampled_from([at for at, line in enumerate(whole) if MACHINE.match(line)]))
    spots = [found.start() for found in DIGITS.finditer(whole[place]) if not _is_free(whole[place], found.start())]
    if not spots:
        return
    spot = data.draw(st.sampled_from(spots))
    digit = data.draw(st.sampled_from([each for each in "0123456789" if each != whole[place][spot]]))
    whole[place] = whole[place][:spot] + digit + whole[place][spot + 1 :]
    cut = written.summary.count(b"\n")
    changed = Written("\n".join([*whole[:cut], ""]).encode(), "\n".join(whole[cut:]).encode(), seals)
    assert check_journal(changed, facts), whole[place]


def _is_free(line: str, spot: int) -> bool:
    """Whether a digit is part of a quoted line of a log, which only a seal can hold against the journal."""
    return "agent.log" in line and spot > line.index("agent.log")


def test_what_append_wrote_is_held_against_its_seal_to_the_byte(composed: MadeUpRun) -> None:
    written = read_written(composed.workspace.reports)
    assert written.summary is not None
    changed = written.summary.replace(b"no reason was given", b"a fine reason", 1)
    (found,) = check_journal(
        Written(changed, written.lines, written.seals), read_facts(composed.workspace, composed.clock)
    )
    line = changed[: changed.index(b"a fine reason")].count(b"\n") + 1
    assert (found.rule, found.code, found.line) == (1, "changed", line)
    assert "a fine reason" in found.stated and "no reason was given" in found.machine


def test_the_command_says_each_breach_in_both_languages_and_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = three_rounds(tmp_path / "run")
    directory = str(run.workspace.directory)
    assert main(["journal", "check", directory]) == 0
    assert capsys.readouterr().out == "no breach in 3 rounds\n"
    run.workspace.summary.write_text(run.summary.replace("Score**: 28.125", "Score**: 82.125"))
    assert main(["journal", "check", directory, "--lang", "zh"]) == 3
    said = capsys.readouterr().out
    assert f"{run.workspace.summary}:" in said and "没有任何提交得到该分数" in said and "机器值" in said
    assert main(["journal", "check", str(run.workspace.summary), "--json"]) == 3
    value = json.loads(capsys.readouterr().out)
    codes = {each["code"] for each in value["breaches"]}
    assert [each["score"] for each in value["rounds"]] == [31.25, 82.125, 96.875]
    assert codes >= {"invented", "changed", "line_differs"}
    assert main(["journal", "check", str(tmp_path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_journal_in_any_file_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "an-article.txt"
    path.write_text("Words before it. " + LOST)
    assert main(["journal", "check", str(path), "--json"]) == 3
    (found,) = json.loads(capsys.readouterr().out)["rounds"]
    assert (found["iteration"], found["duration_s"], found["train_type"], found["status"]) == (4, 99, "SFT", "success")
    assert (found["score"], found["improvement"], found["best"], found["best_iteration"]) == (31.5, 2.5, 33.0, 6)
    assert main(["journal", "check", str(path)]) == 3
    assert f"{path}:1: fact: a best from a later round" in capsys.readouterr().out
    assert main(["journal", "repair", str(path)]) == 1


def test_every_message_has_two_languages() -> None:
    assert all(
        english and any("\u4e00" <= each <= "\u9fff" for each in chinese) for english, chinese in MESSAGES.values()
    )


BAD_BYTES: dict[str, Callable[[bytes], bytes]] = {
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "utf16": lambda data: data.decode().encode("utf-16"),
    "latin": lambda data: data.replace("第一轮".encode(), b"\xe9\xff"),
    "old_mac": lambda data: data.replace(b"\n", b"\r"),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_other_line_ends_and_encodings_are_one_finding_and_everything_else_is_read(run: MadeUpRun, name: str) -> None:
    data = BAD_BYTES[name](BY_HAND.encode())
    lines = (json.dumps(LINE) + "\n").encode()
    found = check_journal(Written(data, lines), read_facts(run.workspace, run.clock))
    assert {each.code for each in found} == {"encoding"}


HOSTILE = {
    "openers": "```x\n" * 200_000,
    "headings": "## Iteration 1 (2027-02-03 04:06, 耗时 1s)\n" * 20_000,
    "spaces": "## Iteration 1 (" + " " * 1_000_000 + "\n- **Score**: " + " " * 1_000_000,
    "score": "## Iteration 1 (2027-02-03 04:06, 耗时 1s)\n- **Score**: " + "1 " * 500_000,
    "words": "## Iteration 1 (2027-02-03 04:06, 耗时 1s)\n- **问题/进步**: " + "a" * 1_000_000,
    "paths": "## Iteration 1 (2027-02-03 04:06, 耗时 1s)\n- **代码片段（上下文）**: " + "a/" * 500_000,
    "stars": "** " * 500_000 + "- * + " * 200_000,
    "labels": "## Iteration 1 (2027-02-03 04:06, 耗时 1s)\n" + "- **Score**: 1\n" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_journal_of_a_megabyte_keeps_whoever_looks_waiting(run: MadeUpRun, name: str) -> None:
    facts = read_facts(run.workspace, run.clock)
    began = process_time()
    assert check_journal(Written(HOSTILE[name].encode(), b"{}\n" * 3000), facts)
    assert process_time() - began < 20
