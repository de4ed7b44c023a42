"""The files of a bench run: workspaces, the clock, scores, results and the log read back as they were meant."""

import json
import multiprocessing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hand_clock import BEGAN, HandClock
from hypothesis import given
from hypothesis import strategies as st

from kev.autorl.__main__ import COMMANDS, main
from kev.autorl.results import COLUMNS, append_result, read_results
from kev.autorl.run_clock import RunClock
from kev.autorl.run_log import RunLog, parse_run_log
from kev.autorl.scores import best_of, improvement_of, read_scores
from kev.autorl.workspace import RunName, create_workspace, grader_directory, open_workspace
from kev.errors import DamagedFile, NotFound, Refused, UsageError
from kev.records.autorl import ResultRow, RunMeta

# ------------------------------------------------------------------------------------------------- workspaces


@given(
    st.integers(0, 3_000_000_000).map(lambda seconds: BEGAN.replace(tzinfo=None) - timedelta(seconds=seconds)),
    st.from_regex(r"[a-z][a-z_0-9-]{0,20}", fullmatch=True),
    st.none() | st.integers(1, 65_535),
)
def test_the_name_of_a_workspace_reads_back(started: datetime, agent: str, port: int | None) -> None:
    if port is None and agent.startswith("p"):
        agent = "a" + agent
    assert RunName.parse(str(RunName(started, agent, port))) == RunName(started, agent, port)


@pytest.mark.parametrize("text", ["", "20270203", "20271303T000000_x", "20270203T040506", "x_20270203T040506_a"])
def test_what_is_no_name_of_a_workspace_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError, match="a workspace is named"):
        RunName.parse(text)


def test_a_new_workspace_has_its_folders_and_links_and_is_never_used_twice(tmp_path: Path) -> None:
    base, data = tmp_path / "tiny", tmp_path / "items"
    base.mkdir()
    data.mkdir()
    made = create_workspace(tmp_path / "root", "arithmetic", "example_sft", BEGAN, base=base, data=data, port=8000)
    assert made.directory == tmp_path / "root/arithmetic/20270203T040506_p8000_example_sft"
    assert (made.models / "tiny").resolve() == base and made.data.resolve() == data
    assert made.code.is_dir() and made.output.is_dir() and made.reports.is_dir()
    with pytest.raises(Refused, match="is there already"):
        create_workspace(tmp_path / "root", "arithmetic", "example_sft", BEGAN, base=base, data=data, port=8000)
    with pytest.raises(NotFound, match="no workspace"):
        open_workspace(made.directory)
    assert tmp_path / "root" in grader_directory(tmp_path / "root", "t", "r").parents
    assert made.directory not in grader_directory(tmp_path / "root", "t", "r").parents


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a\0b", "é"])
def test_a_task_or_agent_cannot_name_a_place_of_its_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="agent"):
        create_workspace(tmp_path / "root", "t", name, BEGAN, base=tmp_path, data=None)
    with pytest.raises(UsageError, match="task"):
        create_workspace(tmp_path / "root", name, "a", BEGAN, base=tmp_path, data=None)


# ------------------------------------------------------------------------------------------------- the clock


def test_a_changed_wall_clock_gives_and_takes_no_time(tmp_path: Path) -> None:
    clock = HandClock()
    run = RunClock.start(tmp_path / "clock.json", 1000, clock)
    clock.pass_time(400)
    clock.wall -= timedelta(hours=5)
    assert (run.elapsed(), run.remaining(), run.is_over) == (400, 600, False)
    again = RunClock.open(tmp_path / "clock.json", clock)
    clock.pass_time(600)
    assert again.remaining() == 0 and again.is_over


def test_a_clock_is_started_once_and_its_first_end_counts(tmp_path: Path) -> None:
    clock = HandClock()
    run = RunClock.start(tmp_path / "clock.json", 1000, clock)
    with pytest.raises(FileExistsError):
        RunClock.start(tmp_path / "clock.json", 9000, clock)
    clock.pass_time(10.5)
    run.submitted()
    run.end()
    clock.pass_time(100)
    run.end()
    began = int(BEGAN.timestamp())
    assert RunClock.open(tmp_path / "clock.json", clock).meta() == RunMeta(
        start_time=began, timeout_s=1000, last_submit_time=began + 10, end_time=began + 10
    )
    assert run.meta().duration(now=0) == 10


@given(st.lists(st.floats(0.1, 400), max_size=30))
def test_every_notice_is_given_once_however_the_time_is_cut(spans: list[float]) -> None:
    import tempfile

    clock = HandClock()
    with tempfile.TemporaryDirectory() as directory:
        run = RunClock.start(Path(directory) / "clock.json", 1000, clock)
    before, shares = 0.0, []
    for span in spans:
        shares += [notice.share for notice in run.notices_between(before, before + span)]
        before += span
    assert shares == [share for share in (0.5, 0.1, 0.02) if before >= 1000 * (1 - share)]


# ------------------------------------------------------------------------------------------------- scores.json


def entry(number: int, score: object, **more: object) -> dict[str, object]:
    return {"submission_id": number, "timestamp": "2027-02-03T04:05:06.000001", "model_path": "output/v1",
            "score": score, "baseline_score": 10.0, "improvement": None, "elapsed_seconds": 1.5, **more}  # fmt: skip


@pytest.mark.parametrize("turn", [1, -1])
def test_the_best_is_the_first_to_reach_it_whatever_order_and_whatever_else_is_there(tmp_path: Path, turn: int) -> None:
    entries = [
        entry(1, float("inf")), entry(2, 40.5), entry(3, float("nan")), entry(4, 40.5),
        entry(5, 0.0, error="no memory"), entry(6, None, error="timed out"), entry(7, 12),
        entry(8, 99.0, error="but torn"), entry(9, float("nan"), error="diverged"),
    ][::turn]  # fmt: skip
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(entries))
    found = read_scores(path)
    assert found.best is not None and (found.best.submission_id, found.best.score) == (2, 40.5)
    assert [each.submission_id for each in found.valid] == [2, 4, 7]
    assert [each.submission_id for each in found.errors] == [5, 6, 8, 9]
    assert [each.submission_id for each in found.not_finite] == [1, 3], "each is counted once"
    assert found.findings == []


def test_a_bad_entry_is_named_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps([entry(1, "40"), 5, entry(2, 7.0, mine="kept"), entry(2, 8.0), {"score": 3}]))
    found = read_scores(path)
    assert [each.score for each in found.entries] == [7.0]
    assert found.entries[0].to_json()["mine"] == "kept"
    assert [line.partition(":")[0] for line in found.findings] == ["entry 1", "entry 2", "entry 4", "entry 5"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b"\0\0", b"[NaN"])
def test_a_file_that_holds_no_list_is_damaged_and_says_why(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "scores.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile):
        read_scores(path)


def test_what_cannot_be_compared_has_no_improvement_and_no_best() -> None:
    assert improvement_of(None, 3.0) is None and improvement_of(3.0, None) is None
    assert improvement_of(0.3, 0.1) == 0.2
    assert best_of([]) is None


# ------------------------------------------------------------------------------------------------- results.csv


def row(run: str, **more: object) -> ResultRow:
    return ResultRow(run_id=run, timestamp="2027-02-03T04:05:06+00:00", task="t", agent="a", base_model="b", **more)


def test_a_row_is_read_back_by_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    append_result(path, row("r1", baseline=1.5, workspace='a "b", c\nd', success=True))
    append_result(path, row("r2"))
    found = read_results(path)
    assert found.columns == list(COLUMNS) and found.findings == []
    assert found.rows[0]["baseline"] == "1.5" and found.rows[0]["success"] == "True"
    assert found.rows[0]["workspace"] == 'a "b", c\\nd' and found.rows[1]["best_score"] == ""
    assert path.read_text().count("\n") == 3


def test_an_older_file_gains_the_columns_it_lacks_and_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(b"\xef\xbb\xbfworkspace,run_id,mine\r\n/w,old,kept\r\n")
    append_result(path, row("new", driver_model="m"))
    found = read_results(path)
    assert found.columns[:3] == ["workspace", "run_id", "mine"] and "driver_model" in found.columns
    assert found.rows[0]["mine"] == "kept" and found.rows[0]["driver_model"] == ""
    assert found.rows[1]["run_id"] == "new" and found.rows[1]["driver_model"] == "m"


def test_a_torn_file_is_neither_written_over_nor_half_believed(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    append_result(path, row("r1"))
    torn = path.read_bytes() + b"r2,2027"
    path.write_bytes(torn)
    found = read_results(path)
    assert [each["run_id"] for each in found.rows] == ["r1"] and "line 3" in found.findings[0]
    with pytest.raises(DamagedFile, match="line 3"):
        append_result(path, row("r3"))
    assert path.read_bytes() == torn


def _append_some(path: Path, writer: int) -> None:
    for number in range(10):
        append_result(path, row(f"w{writer}-{number}"))


def test_rows_that_several_runs_append_at_once_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_some, args=(path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {each["run_id"] for each in read_results(path).rows} == {f"w{w}-{n}" for w in range(3) for n in range(10)}


# ------------------------------------------------------------------------------------------------- run.log


def test_a_message_stays_on_its_line_whatever_it_holds(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "run.log", HandClock())
    log.info("baseline\n2027-01-01 00:00:00 | INFO | forged\x1b[2J")
    log.error("agent ended with exit code 3")
    lines = list(parse_run_log((tmp_path / "run.log").read_bytes() + b"Traceback:\n  x\n"))
    assert [(line.number, line.level) for line in lines] == [(1, "INFO"), (2, "ERROR")]
    assert lines[0].message == "baseline\\n2027-01-01 00:00:00 | INFO | forged\\x1b[2J"


def test_an_unknown_command_lists_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2 and main(["fly"]) == 2 and main(["--help"]) == 0
    said = capsys.readouterr()
    assert "usage: python -m kev.autorl" in said.err and all(name in said.out for name in COMMANDS)


def test_an_agent_s_training_rows_end_at_newlines_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kev.autorl.agents.training import examples

    rows = [{"question": f"one{mark}two", "answer": "3"} for mark in "\u2028\u2029\x85\ufeff\x0c"]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (tmp_path / "train.jsonl").write_bytes("\r\n".join([*lines, "", ""]).encode())
    monkeypatch.setenv("DATA_PATH", str(tmp_path))
    assert [row["prompt"] for row in examples()] == [f"Question: {row['question']}\nAnswer:" for row in rows]


def test_a_file_that_a_spreadsheet_saved_keeps_its_mark_and_line_ends_when_a_row_is_added(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes('\ufeffrun_id,agent,Notiz\r\na,"x\u2028y","für, alle"\r\n'.encode())
    append_result(path, row("b"))
    first, second, third, end = path.read_bytes().split(b"\r\n")
    assert first.startswith(b"\xef\xbb\xbfrun_id,agent,Notiz,") and third.startswith(b"b,") and end == b""
    assert second.decode().startswith('a,x\u2028y,"für, alle",')
    path.write_bytes("run_id\na\n".encode("utf-16"))
    with pytest.raises(DamagedFile, match="UTF-16"):
        append_result(path, row("c"))
