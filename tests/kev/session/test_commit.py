"""The record of a session goes into git whole, without dumps or weights, and a push loses nothing."""

import json
import subprocess
from pathlib import Path

import pytest
from checkouts import git
from hypothesis import given
from hypothesis import strategies as st
from round_lab import RoundLab

from kev.errors import DamagedFile
from kev.git import GitFailed
from kev.rounds.launch import launch
from kev.session.__main__ import main
from kev.session.commit import commit_session, paths_of


@pytest.fixture(autouse=True)
def own_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "ada@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


KEPT = [
    "PLAN.md", "runs/night-state.json", "runs/night-events.jsonl", "runs/r201-readout/round201.json",
    "runs/r201-verdict/2b-tests.json", "runs/r201-full/results.jsonl", "runs/r201-full/00-trial-0/result.json",
    "runs/r201-full/00-trial-0/train.log",
]  # fmt: skip
NEVER = [
    "runs/r201-full/00-trial-0/development/rows.json", "runs/r201-full/00-trial-0/rows.json",
    "runs/r201-full/00-trial-0/predictions.jsonl", "runs/r201-full/00-trial-0/checkpoint/model.safetensors",
    "runs/r201-full/00-trial-0/checkpoint/head.pt", "runs/ledger.jsonl", "runs/.night-state.json.lock",
    "runs/other/report.json",
]  # fmt: skip


async def prepared(lab: RoundLab) -> None:
    (lab.root / ".gitignore").write_text("runs/\n")
    await launch(lab.engine(), lab.loaded, stagger_s=0)
    for name in (*KEPT, *NEVER):
        path = lab.root / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n")


def committed(root: Path) -> list[str]:
    return git(root, "show", "--name-only", "--format=", "HEAD").split()


async def test_state_plan_readouts_and_verdicts_are_committed_and_dumps_and_weights_never(round_lab: RoundLab) -> None:
    await prepared(round_lab)
    (round_lab.root / "unrelated.txt").write_text("x")
    git(round_lab.root, "add", "unrelated.txt")
    (round_lab.root / "PLAN.md").write_text("# Plan\n\n## Round 201\n\nIt helped.\n")
    done = commit_session(round_lab.root, round_lab.state, "Record the night")
    assert sorted(committed(round_lab.root)) == sorted(KEPT) == sorted(done.paths)
    assert git(round_lab.root, "diff", "--cached", "--name-only").split() == ["unrelated.txt"]
    assert (done.pushed_to, done.problem) == (None, "")
    assert commit_session(round_lab.root, round_lab.state, "Again").commit is None


async def test_a_damaged_state_is_not_committed_over_a_good_one(round_lab: RoundLab) -> None:
    await prepared(round_lab)
    commit_session(round_lab.root, round_lab.state, "Record the night")
    head = git(round_lab.root, "rev-parse", "HEAD")
    round_lab.state.write_bytes(b"")
    with pytest.raises(DamagedFile, match="empty"):
        commit_session(round_lab.root, round_lab.state, "Record the night")
    assert git(round_lab.root, "rev-parse", "HEAD") == head


async def test_what_is_too_large_for_git_is_left_out_and_said(
    round_lab: RoundLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepared(round_lab)
    monkeypatch.setattr("kev.session.commit.LARGEST", 1000)
    (round_lab.root / "runs/r201-full/00-trial-0/train.log").write_text("x" * 1001)
    paths, large = paths_of(round_lab.root, round_lab.state)
    assert "runs/r201-full/00-trial-0/train.log" in large and not set(paths) & set(large)


async def remote(lab: RoundLab, path: Path) -> Path:
    await prepared(lab)
    git(lab.root, "checkout", "-qb", "research/night")
    git(lab.root, "init", "-q", "--bare", str(path))
    git(lab.root, "remote", "add", "origin", str(path))
    return path


async def test_a_commit_is_pushed_where_a_remote_is_set(round_lab: RoundLab, tmp_path: Path) -> None:
    bare = await remote(round_lab, tmp_path / "bare")
    done = commit_session(round_lab.root, round_lab.state, "Record the night")
    assert done.pushed_to == "origin/research/night"
    assert git(bare, "rev-parse", "refs/heads/research/night").strip() == done.commit


async def test_where_the_branch_has_moved_on_the_commits_go_beside_it_and_nothing_is_lost(
    round_lab: RoundLab, tmp_path: Path
) -> None:
    bare = await remote(round_lab, tmp_path / "bare")
    commit_session(round_lab.root, round_lab.state, "Record the night")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", "--branch", "research/night", str(bare), str(other))
    (other / "PLAN.md").write_text("# Another plan\n")
    git(other, "commit", "-qam", "Somebody else")
    git(other, "push", "-q", "origin", "research/night")
    theirs = git(bare, "rev-parse", "refs/heads/research/night")
    round_lab.new_gate().note("launch", "one more")
    before = (round_lab.root / "PLAN.md").read_bytes()
    done = commit_session(round_lab.root, round_lab.state, "Record more", sleep=lambda _: None)
    assert git(bare, "rev-parse", "refs/heads/research/night") == theirs
    assert done.pushed_to is not None and done.pushed_to.startswith("origin/research/night-night-")
    assert git(bare, "rev-parse", f"refs/heads/{done.pushed_to.removeprefix('origin/')}").strip() == done.commit
    assert "has moved on; merge" in done.problem and (round_lab.root / "PLAN.md").read_bytes() == before


async def test_a_remote_that_is_away_is_tried_again_and_keeps_the_commit(round_lab: RoundLab, tmp_path: Path) -> None:
    bare = await remote(round_lab, tmp_path / "bare")
    bare.rename(tmp_path / "away")
    pauses: list[float] = []
    done = commit_session(round_lab.root, round_lab.state, "Record the night", sleep=pauses.append)
    assert done.commit is not None and done.pushed_to is None and done.problem and len(pauses) == 2

    def comes_back(_: float) -> None:
        (tmp_path / "away").rename(bare)

    assert commit_session(round_lab.root, round_lab.state, "Again", sleep=comes_back).pushed_to is not None
    assert git(bare, "rev-parse", "refs/heads/research/night").strip() == done.commit


async def test_a_remote_that_refuses_once_and_then_accepts_has_the_commit_on_its_branch(
    round_lab: RoundLab, tmp_path: Path
) -> None:
    bare = await remote(round_lab, tmp_path / "bare")
    hook = bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'maintenance' >&2\nexit 1\n")
    hook.chmod(0o755)
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        hook.unlink()

    done = commit_session(round_lab.root, round_lab.state, "Record the night", sleep=wait)
    assert (done.pushed_to, done.problem, len(pauses)) == ("origin/research/night", "", 1)
    assert git(bare, "rev-parse", "refs/heads/research/night").strip() == done.commit


async def test_a_branch_that_takes_nothing_keeps_its_commits_and_the_record_goes_beside_it(
    round_lab: RoundLab, tmp_path: Path
) -> None:
    bare = await remote(round_lab, tmp_path / "bare")
    hook = bare / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/heads/research/night ]\n')
    hook.chmod(0o755)
    done = commit_session(round_lab.root, round_lab.state, "Record the night", sleep=lambda _: None)
    assert done.pushed_to is not None and done.pushed_to.startswith("origin/research/night-night-")
    assert "does not take it" in done.problem and "; merge origin/" in done.problem
    assert git(bare, "rev-parse", f"refs/heads/{done.pushed_to.removeprefix('origin/')}").strip() == done.commit


async def test_someone_else_pushes_first_on_the_main_branch_and_both_records_stay(
    round_lab: RoundLab, tmp_path: Path
) -> None:
    bare = await remote(round_lab, tmp_path / "bare")
    git(round_lab.root, "checkout", "-qB", "main")
    git(round_lab.root, "push", "-q", "origin", "main")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", "--branch", "main", str(bare), str(other))
    (other / "PLAN.md").write_text("# Another plan\n")
    git(other, "commit", "-qam", "Somebody else")
    git(other, "push", "-q", "origin", "main")
    theirs = git(bare, "rev-parse", "refs/heads/main")
    done = commit_session(round_lab.root, round_lab.state, "Record the night", sleep=lambda _: None)
    assert git(bare, "rev-parse", "refs/heads/main") == theirs
    assert done.pushed_to is not None and done.pushed_to.startswith("origin/main-night-")
    assert "a session works on a research branch" in done.advice
    # Once a person has brought both together, the next record goes to the branch itself.
    git(round_lab.root, "fetch", "-q", "origin")
    git(round_lab.root, "merge", "-q", "--no-edit", "-X", "ours", "origin/main")
    round_lab.new_gate().note("launch", "one more")
    again = commit_session(round_lab.root, round_lab.state, "Record more", sleep=lambda _: None)
    assert (again.pushed_to, again.problem) == ("origin/main", "")
    log = git(bare, "log", "--format=%s", "refs/heads/main").split("\n")
    assert {"Somebody else", "Record the night", "Record more"} <= set(log)


async def test_an_index_that_another_git_holds_is_waited_for(round_lab: RoundLab) -> None:
    await prepared(round_lab)
    lock = round_lab.root / ".git" / "index.lock"
    lock.write_text("")
    done = commit_session(round_lab.root, round_lab.state, "Record", sleep=lambda _: lock.unlink(missing_ok=True))
    assert done.commit is not None
    lock.write_text("")
    round_lab.new_gate().note("launch", "one more")
    with pytest.raises(GitFailed, match=r"index\.lock"):
        commit_session(round_lab.root, round_lab.state, "Record", sleep=lambda _: None)


async def test_a_dry_run_names_the_files_and_commits_nothing(
    round_lab: RoundLab, capsys: pytest.CaptureFixture[str]
) -> None:
    await prepared(round_lab)
    head = git(round_lab.root, "rev-parse", "HEAD")
    capsys.readouterr()
    assert main(["commit", "--root", str(round_lab.root), "--dry-run", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["would_commit"]) == sorted(KEPT)
    assert git(round_lab.root, "rev-parse", "HEAD") == head


def test_outside_a_checkout_it_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "night-state.json").write_text(
        '{"session": "night", "authorization_usd": 1, "baseline_usd": 0}'
    )
    assert main(["commit", "--root", str(tmp_path)]) == 1
    assert "not a git repository" in capsys.readouterr().err


NAMES = st.sampled_from([
    "rows.json", "predictions.jsonl", "head.pt", "model.safetensors", "report.json", "x", ".hidden", "checkpoint",
    "resume", "result.json", "train.log", "results.jsonl",
])  # fmt: skip


@given(tree=st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=12))
def test_whatever_lies_in_a_study_no_dump_and_no_weight_is_named(
    tmp_path_factory: pytest.TempPathFactory, tree: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    state = root / "runs" / "night-state.json"
    state.parent.mkdir()
    state.write_text(json.dumps({"session": "night", "authorization_usd": 1, "baseline_usd": 0,
                                 "studies": {"s": {"status": "done"}, "../s": {"status": "done"}}}))  # fmt: skip
    for parts in tree:
        path = root.joinpath("runs", "s", *parts)
        if not any(parent.is_file() for parent in path.parents) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    paths, _ = paths_of(root, state)
    never = {"rows.json", "predictions.jsonl", "head.pt", "model.safetensors", "x", ".hidden"}
    assert not {Path(path).name for path in paths} & never and not any(".." in path for path in paths)


def test_gits_own_rules_keep_readouts_and_no_rows(tmp_path: Path) -> None:
    rules = Path(__file__).parents[3] / ".gitignore"
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_bytes(rules.read_bytes())
    wanted = {"runs/r9-readout/round9.json": True, "runs/r9-verdict/2b-tests.json": True, "runs/x/rows.json": False,
              "runs/x/report.json": True, "runs/x/00-trial-0/train.log": True, "runs/night-state.json": False,
              "runs/x/00-trial-0/checkpoint/head.pt": False, "runs/ledger.jsonl": False}  # fmt: skip
    for path, kept in wanted.items():
        asked = subprocess.run(["git", "check-ignore", "-q", path], cwd=tmp_path, check=False)
        assert (asked.returncode != 0) is kept, path
