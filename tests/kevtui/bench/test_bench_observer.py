"""What a bench's files become, also damaged, hostile, missing and half written."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench_files import FULL_WIDTH, HOSTILE, STARTED, SUMMARY, entry, result, workspace, write_meta

from kev.autorl.journal.compose import Order
from kev.autorl.journal.writing import append_round
from kev.autorl.workspace import Workspace
from kev.clock import Clock
from kevtui.bench import words
from kevtui.bench.machine import MachineWatch
from kevtui.bench.observer import BenchObserver
from kevtui.bench.snapshot import BenchSnapshot, Run, RunState
from kevtui.bench.target import bench_at

NAME = "20270115T080000_p8100_my_agent"


class HeldClock(Clock):
    def __init__(self, after_s: float) -> None:
        self.after_s = after_s

    def now(self) -> datetime:
        return datetime.fromtimestamp(STARTED, UTC) + timedelta(seconds=self.after_s)

    def monotonic(self) -> float:
        return self.after_s

    def sleep(self, seconds: float) -> None:
        raise AssertionError("an observer does not sleep")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "arithmetic" / NAME


def observer(path: Path, after_s: float = 900.0) -> BenchObserver:
    target = bench_at(str(path), root=None, cwd=path.parent)
    assert target is not None
    return BenchObserver(target, clock=HeldClock(after_s), poll=True)


def seen(path: Path, after_s: float = 900.0) -> BenchSnapshot:
    return observer(path, after_s).observe()


def run_in(path: Path, after_s: float = 900.0) -> Run:
    run = seen(path, after_s).run
    assert run is not None
    return run


def test_a_run_under_way_is_told_with_its_time_scores_and_best(place: Path) -> None:
    scores = [entry(1, 24.0, label="gain"), entry(2, 31.5), entry(3, 31.5), entry(4, None, error="out of memory")]
    run = run_in(workspace(place, scores))
    assert (run.task, run.agent, run.baseline) == ("arithmetic", "my_agent", 20.0)
    assert (run.time.state, run.time.used_s, run.time.left_s, run.time.share) == (RunState.RUNNING, 900, 2700, 0.25)
    assert run.best is not None and (run.best.number, run.best.improvement) == (2, 11.5)
    assert [words.standing(each) for each in run.submissions] == ["gain", "above", "above", "error"]
    assert [(each.kind, each.count) for each in run.failures] == [("grading failed", 1)]


@pytest.mark.parametrize(
    ("after_s", "meta", "state", "used"),
    [
        (4000.0, {}, RunState.TIME_UP, 4000),
        (9000.0, {"end_time": STARTED + 1200}, RunState.ENDED, 1200),
        (-60.0, {}, RunState.RUNNING, 0),
    ],
)
def test_the_time_of_a_run_follows_its_own_file(
    place: Path, after_s: float, meta: dict[str, int], state: RunState, used: float
) -> None:
    run = run_in(workspace(place, [], **meta), after_s)
    assert (run.time.state, run.time.used_s) == (state, used)


def test_a_score_that_is_no_number_is_missing_and_never_best(place: Path) -> None:
    workspace(place, [])
    (place / "scores.json").write_text(json.dumps([entry(1, float("nan")), entry(2, 21.0)]))
    run = run_in(place)
    assert [(each.score, words.standing(each)) for each in run.submissions] == [(None, "not finite"), (21.0, "above")]
    assert run.best is not None and run.best.number == 2


def test_a_damaged_file_keeps_what_it_last_held_and_is_told(place: Path) -> None:
    watching = observer(workspace(place, [entry(1, 24.0)]))
    assert watching.observe().findings == ()
    (place / "scores.json").write_text('[{"submission_id": 1,')
    (place / "run_meta.json").write_text("[]")
    after = watching.observe()
    assert {finding.path for finding in after.findings} == {"scores.json", "run_meta.json"}
    assert after.run is not None and after.run.best is not None
    assert after.run.time.state is RunState.RUNNING


def test_what_is_not_there_is_missing_and_not_zero(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "scores.json").write_text("[]")
    run = run_in(place)
    assert (run.baseline, run.best, run.time.left_s, run.time.share) == (None, None, None, None)
    assert run.evaluation.number is None and "not known" in run.evaluation.note
    assert words.left(run) == "time not known"


def test_the_journal_is_read_with_both_widths_of_signs_and_both_line_ends(place: Path) -> None:
    workspace(place, [])
    (place / "reports" / "summary.md").write_bytes((SUMMARY + FULL_WIDTH).encode())
    lines = [{"iteration": 2, "failure_type": "training_diverged"}, {"iteration": 3, "status": "success", "score": 25}]
    text = "".join(f"{json.dumps(line)}\n" for line in lines) + '{"iteration": tr'
    (place / "reports" / "summary.jsonl").write_text(text)
    run = run_in(place)
    first, second, third = run.journal.entries
    assert (first.number, first.line, first.duration_s, first.succeeded) == (1, 2, 412.0, True)
    assert (first.score, first.improvement, first.train_type) == (24.0, 4.0, "SFT")
    assert (first.configuration, first.what) == ("lr=1e-5, epochs=1", "warm start")
    assert (second.at, second.duration_s, second.succeeded) == ("2027-01-15 08:30", 812.0, False)
    assert (second.score, second.train_type, second.failure_type) == (None, "GRPO", "training_diverged")
    assert (third.number, third.line, third.score) == (3, None, 25.0)
    assert [(each.kind, each.count) for each in run.failures] == [("training_diverged", 1)]


def test_a_line_of_figures_ends_at_its_newline_and_its_breaches_are_its_rounds(place: Path) -> None:
    workspace(place, [])
    lines = ['{"iteration": 4, "score": NaN, "train_type": "SFT"}', '{"iteration": 5, "train_type": "a\u2028b\x85c"}']
    (place / "reports" / "summary.jsonl").write_text("\n".join(lines) + "\n")
    fourth, fifth = run_in(place).journal.entries
    assert (fourth.number, fourth.score, fourth.train_type) == (4, None, "SFT")
    assert fifth.number == 5 and fifth.train_type
    assert any(":1:" in breach for breach in fourth.breaches) and any(":2:" in breach for breach in fifth.breaches)


def test_a_round_is_marked_by_whether_the_machine_has_what_it_says(place: Path) -> None:
    watching = observer(workspace(place, [entry(1, 24.0)]))
    summary = place / "reports" / "summary.md"
    summary.write_text(SUMMARY.replace("Score**: 24.0", "Score**: 91.5") + FULL_WIDTH)
    run = watching.observe().run
    assert run is not None
    first, second = run.journal.entries
    assert first.holds is False and any("no submission has this score" in each for each in first.breaches)
    assert second.holds is False and any("missing" in each for each in second.breaches)
    assert any("no summary.jsonl" in each for each in run.journal.breaches)
    summary.write_text(SUMMARY)
    run = watching.observe().run
    assert run is not None
    assert not any("no submission has this score" in each for each in run.journal.entries[0].breaches)


def test_a_round_that_was_written_from_the_machines_files_holds(place: Path) -> None:
    workspace(place, [entry(1, 24.0)])
    (place / "code").mkdir()
    (place / "code" / "train.py").write_text("from trl import SFTTrainer\nSFTTrainer(model='m').train()\n")
    order = Order(what="a warm start", why="the base leaves the marker out, see scores.json", submission=1)
    append_round(Workspace(place), order, HeldClock(900.0))
    run = run_in(place)
    assert [(each.number, each.holds, each.breaches) for each in run.journal.entries] == [(1, True, ())]
    assert run.journal.breaches == ()


def test_a_journal_that_cannot_be_checked_is_still_shown(place: Path) -> None:
    workspace(place, [entry(1, 24.0)])
    (place / "reports" / "summary.md").write_text(SUMMARY)
    (place / "reports" / "summary.jsonl").mkdir()
    journal = run_in(place).journal
    assert [(each.number, each.holds) for each in journal.entries] == [(1, None)]
    assert "not checked" in journal.note


def test_without_scores_a_journal_is_not_said_to_hold(place: Path) -> None:
    workspace(place, [entry(1, 24.0)])
    order = Order(what="a warm start", why="the base leaves the marker out, see scores.json", submission=1)
    append_round(Workspace(place), order, HeldClock(900.0))
    (place / "scores.json").unlink()
    journal = run_in(place).journal
    assert [each.holds for each in journal.entries] == [None]
    assert "scores are not compared" in journal.note


def test_the_log_is_followed_from_its_end(place: Path) -> None:
    watching = observer(workspace(place, []))
    log = place / "agent.log"
    log.write_text("".join(f"step {number}\n" for number in range(5000)))
    run = watching.observe().run
    assert run is not None and (len(run.log.lines), run.log.lines[-1]) == (200, "step 4999")
    with log.open("a") as stream:
        stream.write("step 5000\n 10%\r 20%")
    run = watching.observe().run
    assert run is not None and run.log.lines[-3:] == ("step 5000", " 10%", " 20%")
    log.write_text("a new one\n")
    run = watching.observe().run
    assert run is not None and run.log.lines == ("a new one",)


def test_a_link_in_place_of_the_log_to_a_folder_is_told(place: Path) -> None:
    workspace(place, [])
    (place / "agent.log").symlink_to(place)
    assert [finding.path for finding in seen(place).findings] == ["agent.log"]


def test_what_is_graded_comes_from_the_store_and_goes_when_it_is_graded(place: Path, tmp_path: Path) -> None:
    watching = observer(workspace(place, []))
    store = tmp_path / ".grader" / "runs" / "arithmetic" / NAME / "store.jsonl"
    store.parent.mkdir(parents=True)

    def note(kind: str, **facts: object) -> None:
        with store.open("a") as stream:
            stream.write(json.dumps({"number": 1, "kind": kind, "facts": facts}) + "\n")

    note("accepted", number=1, said="output/v1", elapsed=840.0)
    note("accepted", number=2, said="output/v2", elapsed=890.0)
    run = watching.observe().run
    assert run is not None
    now = run.evaluation
    assert (now.number, now.model_path, now.accepted_s, now.waiting) == (1, "output/v1", 60.0, 1)
    note("graded", number=1, score=3.0)
    note("graded", number=2, score=3.0)
    run = watching.observe().run
    assert run is not None and words.evaluation(run.evaluation) == "nothing is being graded"


def test_a_figure_beyond_every_float_is_missing_wherever_it_stands(place: Path, tmp_path: Path) -> None:
    workspace(place, [])
    huge = 10**400
    store = tmp_path / ".grader" / "runs" / "arithmetic" / NAME / "store.jsonl"
    store.parent.mkdir(parents=True)
    facts = {"number": 1, "said": "output/v1", "elapsed": huge}
    store.write_text(json.dumps({"number": 1, "kind": "accepted", "facts": facts}) + "\n")
    (place / "reports" / "summary.jsonl").write_text(json.dumps({"iteration": 1, "score": huge}) + "\n")
    run = run_in(place)
    assert (run.evaluation.number, run.evaluation.accepted_s) == (1, None)
    assert [entry.score for entry in run.journal.entries] == [None]


def test_results_are_compared_by_agent_and_task(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    result(path, "a1", "sft", "arithmetic", 3.0)
    result(path, "a2", "sft", "arithmetic", 5.0, verdict="gain")
    result(path, "b1", "grpo", "decision", None)
    several = seen(path).comparison
    assert several is not None
    assert (several.agents, several.tasks) == (("sft", "grpo"), ("arithmetic", "decision"))
    best, none = several.cell("sft", "arithmetic"), several.cell("grpo", "decision")
    assert best is not None and (best.runs, best.improvement) == (2, 5.0)
    assert none is not None and (none.runs, none.improvement) == (1, None)
    assert several.cell("grpo", "arithmetic") is None


def test_a_run_that_has_no_row_yet_stands_among_the_results_live(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    workspace(tmp_path / "arithmetic" / "20270115T070000_sft", [entry(1, 25.0)], end_time=STARTED + 9)
    result(path, "20270115T070000_sft", "sft", "arithmetic", 5.0, workspace="/elsewhere/arithmetic/20270115T070000_sft")
    live = workspace(tmp_path / "arithmetic" / NAME, [entry(1, 30.0)])
    watching = observer(path)
    several = watching.observe().comparison
    assert several is not None
    ended, running = several.rows
    assert (ended.state, ended.trajectory) == (RunState.ENDED, ((100.0, 25.0),))
    assert (running.run_id, running.state, running.best, running.used_s) == (NAME, RunState.RUNNING, 30.0, 900)
    write_meta(live, end_time=STARTED + 1000)
    several = watching.observe().comparison
    assert several is not None and several.rows[1].state is RunState.ENDED


def test_results_of_an_older_bench_and_bad_rows_are_read_by_their_header(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("agent,run_id,task,improvement\nsft,a1,t,1.5\nsft,a2,t,nan\ntorn,a3\n")
    snapshot = seen(path)
    assert snapshot.comparison is not None
    assert [row.improvement for row in snapshot.comparison.rows] == [1.5, None]
    assert [finding.reason for finding in snapshot.findings] == [
        "line 4: 2 cells where 4 belong",
        "a2: improvement 'nan' is no finite number, and counts nothing",
    ]


def test_a_cell_that_is_no_figure_is_named_and_never_the_best_of_anything(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(
        "run_id,task,agent,baseline,best_score,improvement\n"
        "first,t,sound,40,50,10\ninfinite,t,odd,40,1e999,70\nworded,t,odd,40,n/a,\nempty,t,odd,40,,\n"
        "first,t,sound,40,50,10\nempty,t,other,40,45,5\n"
    )
    snapshot = seen(tmp_path / "results.csv")
    assert snapshot.comparison is not None
    best = {cell.agent: (cell.runs, cell.improvement) for cell in snapshot.comparison.cells}
    assert best == {"sound": (1, 10.0), "odd": (3, None), "other": (1, 5.0)}
    assert [finding.reason for finding in snapshot.findings] == [
        "infinite: best_score '1e999' is no finite number, and counts nothing",
        "worded: best_score 'n/a' is no finite number, and counts nothing",
        "first: a row is there twice, and counts once",
        "empty: is the id of two rows",
    ]


@pytest.mark.parametrize("workspace_cell", ["../../../etc", "/", "\x00", HOSTILE, "x" * 5000])
def test_a_hostile_place_in_the_results_is_only_text(tmp_path: Path, workspace_cell: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"run_id,task,agent,workspace\na1,../up,sft,{workspace_cell}\n")
    snapshot = seen(path)
    assert snapshot.comparison is None or len(snapshot.comparison.rows) <= 1


def test_only_what_a_bench_leaves_is_taken_for_one(tmp_path: Path, place: Path) -> None:
    workspace(place, [])
    (tmp_path / "results.csv").write_text("run_id\n")

    def kind(argument: str) -> bool | None:
        target = bench_at(argument, root=None, cwd=tmp_path)
        return None if target is None else target.is_results

    assert kind(str(place)) is False and kind(f"arithmetic/{NAME}/scores.json") is False
    assert kind("results.csv") is True and kind(".") is True
    (tmp_path / "runs").mkdir()
    for other in (".", "r31", "night3", "runs", "nothing.csv", "", "a\0b"):
        assert kind(other) is None, other


def test_the_machine_is_told_from_what_the_kernel_shows(tmp_path: Path) -> None:
    stat, meminfo = tmp_path / "stat", tmp_path / "meminfo"
    stat.write_text("cpu  100 0 0 100 0 0 0 0 0 0\n")
    meminfo.write_text("MemTotal:  4096 kB\nMemAvailable: 1024 kB\n")
    watch = MachineWatch(tmp_path, tmp_path)
    first = watch.look()
    assert (first.cpu_busy, first.memory_used, first.memory_total, first.load) == (None, 3072 * 1024, 4096 * 1024, None)
    stat.write_text("cpu  175 0 0 125 0 0 0 0 0 0\n")
    assert watch.look().cpu_busy == 0.75
    assert words.machine(MachineWatch(tmp_path / "none", tmp_path).look())[1] == ("memory", "–")


@pytest.mark.parametrize("name", ["scores.json", "run_meta.json", "final.json"])
def test_a_name_that_leads_to_no_file_is_named_and_is_not_nothing_yet(place: Path, name: str) -> None:
    path = workspace(place, [entry(1, 24.0)]) / name
    path.unlink(missing_ok=True)
    for target in (place.parent / "gone", path):
        path.symlink_to(target)
        assert [finding.path for finding in seen(place).findings] == [name]
        path.unlink()
    assert seen(place).findings == ()


def test_scores_in_utf16_are_named_and_not_read_unasked(place: Path) -> None:
    path = workspace(place, []) / "scores.json"
    path.write_bytes(json.dumps([entry(1, 24.0)]).encode("utf-16"))
    (finding,) = seen(place).findings
    assert finding.reason == "UTF-16 or UTF-32 text; save it as UTF-8"
