"""A journal is put right by the machine's files, no prose of it is lost, and what it was stays beside it."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journals import MadeUpRun
from test_autorl_journal_check import BAD_BYTES, BY_HAND, CHANGES, DIGITS, LINE, LOST

from kev.autorl.__main__ import main
from kev.autorl.journal.checking import check_journal
from kev.autorl.journal.correcting import correct_journal
from kev.autorl.journal.facts import Facts, read_facts
from kev.autorl.journal.section import read_journal
from kev.autorl.journal.written import Written, read_written
from kev.errors import Refused

PROSE = ("the first try", "since nothing is known", "the second try", "for scores.json has 31.25", "loss 2 -> 1")


@pytest.fixture
def run(tmp_path: Path) -> MadeUpRun:
    made = MadeUpRun(tmp_path / "run")
    made.submit(31.25)
    made.clock.pass_time(30)
    return made


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> MadeUpRun:
    made = MadeUpRun(tmp_path_factory.mktemp("composed") / "run")
    made.append(submission=made.submit(31.25), what=PROSE[0], why=PROSE[1])
    made.append(submission=made.submit(28.125), what=PROSE[2], why=PROSE[3], progress=PROSE[4])
    made.append(submission=made.submit(96.875))
    return made


def corrected(run: MadeUpRun, text: str, *lines: dict[str, object]) -> Written:
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    facts = read_facts(run.workspace, run.clock)
    written = Written(text.encode(), data)
    before = check_journal(written, facts)
    done = correct_journal(written, facts)
    assert check_journal(done.written, facts) == []
    assert bool(done.changes) == bool(before)
    again = correct_journal(done.written, facts)
    assert (again.written.summary, again.changes) == (done.written.summary, [])
    return done.written


@pytest.mark.parametrize("code", CHANGES)
def test_each_kind_of_breach_is_put_right_and_the_words_stay(run: MadeUpRun, code: str) -> None:
    old, new, _ = CHANGES[code]
    done = corrected(run, BY_HAND.replace(old, new, 1), LINE)
    text = (done.summary or b"").decode()
    for words in ("第一轮", "从基线开始", "变好了"):
        assert words in text or words not in BY_HAND.replace(old, new, 1)
    if code == "invented":
        assert "- **Score**: 31.25 | Improvement: 29.75 | Best: 31.25 (iter 1)" in text
    if code == "setting":
        assert "learning_rate=0.0004" in text


@pytest.mark.parametrize("name", BAD_BYTES)
def test_other_encodings_are_put_right(run: MadeUpRun, name: str) -> None:
    facts = read_facts(run.workspace, run.clock)
    done = correct_journal(Written(BAD_BYTES[name](BY_HAND.encode()), (json.dumps(LINE) + "\n").encode()), facts)
    assert check_journal(done.written, facts) == [] and "从基线开始".encode() in (done.written.summary or b"")


def test_a_section_that_lost_its_line_breaks_gets_them_back_and_the_rounds_before_it_are_put_in() -> None:
    done = correct_journal(Written(LOST.encode()), Facts())
    assert check_journal(done.written, Facts()) == []
    sections = read_journal((done.written.summary or b"").decode()).sections
    assert [each.iteration for each in sections] == [1, 2, 3, 4]
    assert sections[3].score_texts == ("31.5", "2.5", "31.5") and sections[3].text("关键配置") == "lr=3e-5"
    assert "Iteration 2: put in" in "\n".join(done.changes)


def test_rounds_that_are_doubled_missing_or_out_of_order_count_from_one_again(run: MadeUpRun) -> None:
    def section(number: int, what: str) -> str:
        said = BY_HAND.split("\n", 2)[2].replace("Iteration 1", f"Iteration {number}").replace("第一轮", what)
        return said.replace("从基线开始", "agent.log")

    text = (
        "# 运行总结\n"
        + section(1, "one")
        + section(4, "four")
        + section(2, "two")
        + section(2, "two again")
        + section(2, "two")
    )
    done = corrected(run, text, {**LINE, "iteration": 3, "score": 31.25})
    sections = read_journal((done.summary or b"").decode()).sections
    assert [(each.iteration, each.text("做了什么")) for each in sections][:3] == [
        (1, "one"),
        (2, "two"),
        (3, "two again"),
    ]
    assert {each.text("做了什么") for each in sections} >= {"one", "two", "two again", "four"}


def test_words_without_a_field_are_kept_behind_the_title(run: MadeUpRun) -> None:
    text = BY_HAND.replace("* **状态**", "a stray thought\n* **状态**", 1) + "* **做了什么**：said twice\n"
    text = text.replace("* **训练类型**：GRPO", "* **训练类型**：a mixture of mine")
    text = text.replace("从基线开始", "从基线开始\n## Iteration two")
    done = corrected(run, "before it all\n" + text, {**LINE, "why": "a reason in the wrong file"})
    said = (done.summary or b"").decode()
    assert said.startswith("# 运行总结\n")
    for words in ("before it all", "a stray thought", "said twice", "a mixture of mine", "a reason in the wrong file"):
        assert words in said
    assert "从基线开始\n\\## Iteration two\n" in said and said.count("# 运行总结") == 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), sealed=st.booleans())
def test_any_digit_that_is_changed_is_put_right_and_no_prose_is_lost(
    composed: MadeUpRun, data: st.DataObject, sealed: bool
) -> None:
    written = read_written(composed.workspace.reports)
    assert written.summary is not None and written.lines is not None
    text = (written.summary + written.lines).decode()
    spot = data.draw(st.sampled_from([found.start() for found in DIGITS.finditer(text)]))
    digit = data.draw(st.sampled_from([each for each in "0123456789" if each != text[spot]]))
    changed = (text[:spot] + digit + text[spot + 1 :]).encode()
    cut = len(written.summary)
    facts = read_facts(composed.workspace, composed.clock)
    broken = Written(changed[:cut], changed[cut:], written.seals if sealed else ())
    done = correct_journal(broken, facts)
    assert check_journal(done.written, facts) == []
    if sealed:
        start = (done.written.summary or b"").index(b"\n## Iteration 1")
        assert (done.written.summary or b"")[start:] == written.summary[written.summary.index(b"\n## Iteration 1") :]
        assert done.written.lines == written.lines
    for words in PROSE:
        if words.encode() in changed:
            assert words.encode() in (done.written.summary or b"")


def test_what_append_wrote_comes_back_to_the_byte_and_the_change_is_kept_as_a_note(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.append(submission=run.submit(31.25), what="the truth")
    run.append(submission=run.submit(40.0))
    whole = run.summary
    run.workspace.summary.write_text(whole[: whole.index("\n## Iteration 2")].replace("the truth", "a tale"))
    directory = str(run.workspace.directory)
    assert main(["journal", "repair", directory, "--dry-run"]) == 0 and "a tale" in run.summary
    assert main(["journal", "repair", directory]) == 0
    assert run.findings() == [] and run.summary.endswith(whole[whole.index("\n## Iteration 1") :])
    assert "> Iteration 1 · 做了什么: a tale" in run.summary
    kept = run.workspace.summary.with_name("summary.md.before-repair-1")
    assert "a tale" in kept.read_text()


def test_the_command_says_each_change_and_keeps_every_file(run: MadeUpRun, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(run.workspace.directory)
    run.workspace.summary.write_text(BY_HAND.replace("31.3 ｜ Imp", "45.0 ｜ Imp"))
    run.workspace.summary_lines.write_text("{damaged\n")
    assert main(["journal", "repair", directory, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert any("Score" in each and "45.0" in each and "31.25" in each for each in value["changes"])
    assert [Path(each).read_bytes()[:9] for each in value["kept"]] == ["# 运行总结\n".encode()[:9], b"{damaged\n"]
    assert main(["journal", "repair", directory]) == 0
    assert capsys.readouterr().out == "nothing to put right\n"
    run.workspace.summary.unlink()
    run.workspace.summary.symlink_to(run.workspace.agent_log)
    assert main(["journal", "repair", directory]) == 1


def test_a_link_is_never_written_through(run: MadeUpRun) -> None:
    run.workspace.summary_lines.symlink_to(run.workspace.run_log)
    with pytest.raises(Refused, match="a link"):
        run.append(submission=1)
