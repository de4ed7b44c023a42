"""The tables say everything the Snapshot holds, on every kind of output."""

import io
import re
from dataclasses import replace

import pytest

from kevtui.headless import once
from kevtui.headless.output import Output
from kevtui.observe.snapshot import Alert, Finding, Readout, Severity, Snapshot


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def file_output(encoding: str = "utf-8") -> Output:
    return Output(io.TextIOWrapper(io.BytesIO(), encoding=encoding), {})


def on_terminal(columns: int, **environment: str) -> Output:
    return Output(Terminal(), {"TERM": "xterm-256color", "COLUMNS": str(columns), **environment})


def words(text: str) -> str:
    """`text` without its layout: one space for any run of white space."""
    return " ".join(text.split())


def test_every_criterion_is_shown_with_its_figures_and_its_verdict(snapshot: Snapshot) -> None:
    lines = {words(line) for line in once.render(snapshot, file_output()).splitlines()}
    assert "1_hard primary ✓ pass 0.0063 > 0.0000 0.8612 0.8471 +0.0141 [0.0063, 0.0220] hard.acc.lower > 0" in lines
    assert "3_ece calibration · missing – <= – – – – – hard.ece.candidate <= hard.ece.parent" in lines


def test_the_candidate_and_what_is_missing_are_shown(snapshot: Snapshot) -> None:
    lines = {line.strip() for line in once.render(snapshot, file_output()).splitlines()}
    assert {"candidate 9b: 9b-a", "candidate 27b: none", "missing candidate:runs/r41-27b-a-hard"} <= lines
    assert "missing, optional candidate:runs/r41-9b-a-long" in lines


def test_an_alert_that_repeats_a_finding_is_told_once(snapshot: Snapshot) -> None:
    finding = snapshot.findings[0]
    repeated = Alert("finding", Severity.WARNING, finding.path, finding.reason)
    text = once.render(replace(snapshot, alerts=(*snapshot.alerts, repeated)), file_output())
    assert text.count(finding.reason) == 1
    assert "ends 60 min past its timeout" in text


def test_money_shows_the_figures_and_says_what_is_not_known(snapshot: Snapshot) -> None:
    lines = {words(line) for line in once.render(snapshot, file_output()).splitlines()}
    assert {"spent $291.69", "committed, at most $50.12", "headroom $558.19", "AI gateway – not known"} <= lines
    assert "reading is old 3 min of 2026-03-01 23:58Z" in lines


def test_a_ledger_that_could_not_be_read_makes_the_committed_sum_incomplete(snapshot: Snapshot) -> None:
    text = once.render(
        replace(
            snapshot, money=replace(snapshot.money, committed_complete=False, committed_note="a ledger cannot be read")
        ),
        file_output(),
    )
    assert "committed, at most $50.12 incomplete: a ledger cannot be read" in words(text)


def test_a_sample_and_its_money_are_called_what_they_are(snapshot: Snapshot) -> None:
    text = once.render(replace(snapshot, sample=True, money=replace(snapshot.money, simulated=True)), file_output())
    assert "SAMPLE" in text.splitlines()[0]
    assert "Money (simulated)" in text


def test_nothing_known_is_said_section_by_section(snapshot: Snapshot) -> None:
    text = once.render(Snapshot(taken_at=snapshot.taken_at, title="r1", root="."), file_output())
    for section in ("Money", "Studies", "Leases", "Reads", "Read-out", "Verdicts"):
        assert section in text.splitlines()
    assert words(text).count("none") >= 4


def test_a_round_that_nobody_has_read_out_says_so(snapshot: Snapshot) -> None:
    text = once.render(replace(snapshot, readout=Readout(round=41)), file_output())
    assert "Read-out · round 41   nothing has been read out yet" in text.splitlines()


def test_what_no_terminal_shows_is_never_folded_nor_coloured(snapshot: Snapshot) -> None:
    reason = "long " * 200 + "end"
    text = once.render(replace(snapshot, findings=(Finding("runs/x", reason),)), file_output())
    assert any(reason in line for line in text.splitlines())
    assert "\x1b" not in text


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(snapshot: Snapshot, columns: int) -> None:
    text = once.render(snapshot, on_terminal(columns, NO_COLOR="1"))
    assert max(len(line) for line in text.splitlines()) <= columns


def test_a_narrow_terminal_still_gets_every_word(snapshot: Snapshot) -> None:
    wide = once.render(snapshot, file_output())
    narrow = words(once.render(snapshot, on_terminal(80, NO_COLOR="1")))
    for word in ("fc-01", "420 of 1140", "PAST ITS TIMEOUT", "0.8612", "is the ledger's", "gateway 503"):
        assert word in wide
        assert word in narrow


def test_a_terminal_gets_colours_unless_it_asks_for_none(snapshot: Snapshot) -> None:
    assert "\x1b[" in once.render(snapshot, on_terminal(120))
    for refusal in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in once.render(snapshot, on_terminal(120, **refusal))


def test_hostile_text_is_painted_as_data(snapshot: Snapshot) -> None:
    hostile = "[/] [@click=app.quit]x[/] [link=file:///a]y[/link] \\ \x1b]52;c;AA=\x07 \x9b1m \x08\r\n \ud83d"
    shown = r"[/] [@click=app.quit]x[/] [link=file:///a]y[/link] \ \x1b]52;c;AA=\x07 \x9b1m \x08\r\n \ud83d"
    damaged = replace(snapshot, findings=(Finding("runs/x", hostile),))
    text = once.render(damaged, file_output())
    assert shown in text
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text) is None
    assert "\x1b]8;" not in once.render(damaged, on_terminal(300)), "a link was made of file text"


def test_an_ascii_output_gets_the_same_words(snapshot: Snapshot) -> None:
    text = once.render(snapshot, file_output("ascii"))
    assert text.isascii()
    for word in ("r41", "night-7", "critical", "running", "Read-out", "+ pass", "candidate 9b: 9b-a"):
        assert word in text


def test_a_text_of_a_million_characters_is_cut(snapshot: Snapshot) -> None:
    text = once.render(replace(snapshot, findings=(Finding("runs/x", "a" * 1_000_000),)), file_output())
    assert len(text) < 20_000
