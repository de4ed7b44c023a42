"""One training process on a machine, and no finished checkpoint is ever deleted."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev import files
from kev.compute.protocol import Compute
from kev.errors import Refused
from kev.experiment import main as experiment
from kev.procedure.training import LOCK_VARIABLE, only_training, training_lock
from kev.train.__main__ import main as train

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOCK_VARIABLE, str(tmp_path / "training.lock"))
    return tmp_path / "training.lock"


HOLDER = """
import sys
from kev.procedure.training import only_training
with only_training():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_training_on_the_machine_is_refused_and_names_the_first(
    lock: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        paths = ["--plan", str(tmp_path / "p.json"), "--suite", str(tmp_path / "s"), "--out", str(tmp_path / "o")]
        assert train(paths) == 1
        assert f"another training runs on this machine (process {other.pid} " in capsys.readouterr().err
        other.communicate("")
    assert train(paths) == 1
    assert "no such file" in capsys.readouterr().err


def test_a_study_on_this_machine_is_refused_while_another_training_runs(
    lock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kev.experiment.open_suite", lambda _: None)
    given_options = ["--suite", "s", "--out", str(tmp_path / "o"), "--resume"]
    with only_training():
        assert experiment(given_options) == 1
    assert "another training runs on this machine" in capsys.readouterr().err


def test_the_other_ranks_of_a_training_are_no_second_one(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with only_training():
        monkeypatch.setenv("RANK", "1")
        with only_training():
            pass


def test_without_a_variable_the_lock_is_that_of_the_machine_and_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOCK_VARIABLE)
    here = training_lock()
    monkeypatch.chdir("/")
    assert training_lock() == here and here.is_absolute()


@pytest.mark.parametrize("remove", [files.remove, files.remove_tree, files.remove_at_once])
@pytest.mark.parametrize(
    ("target", "mark"),
    [
        ("00-trial-0", "00-trial-0/checkpoint/training_metrics.json"),
        ("00-trial-0/checkpoint", "00-trial-0/checkpoint/training_metrics.json"),
        ("00-trial-0/snapshots", "00-trial-0/snapshots/step-0000114/checkpoint/snapshot.json"),
        ("00-trial-0/snapshots/step-0000114", "00-trial-0/snapshots/step-0000114/checkpoint/snapshot.json"),
        ("study", "study/00-trial-0/snapshots/step-0000114/checkpoint/snapshot.json"),
    ],
)
def test_a_finished_checkpoint_survives_every_way_to_remove_a_directory(
    tmp_path: Path, remove: object, target: str, mark: str
) -> None:
    path = tmp_path / mark
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert callable(remove)
    with pytest.raises(Refused, match="no checkpoint is ever deleted"):
        remove(tmp_path / target)
    assert path.read_text() == "{}"


@given(name=st.sampled_from(["resume", "development", ".staged", "step-0000007"]))
def test_what_is_no_finished_checkpoint_can_be_removed(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.mktemp("trial")
    for remove in (files.remove, files.remove_tree, files.remove_at_once):
        (root / name / "checkpoint").mkdir(parents=True)
        (root / name / "checkpoint" / "head.pt").write_bytes(b"x")
        remove(root / name)
        assert not (root / name).exists()


def test_nothing_of_the_engine_can_delete_on_a_volume() -> None:
    verbs = ("remove", "delete", "rm", "unlink", "clear", "purge")
    assert [name for name in dir(Compute) if name.startswith(verbs)] == []


ITS_OWN_DATA = ("kev/emulator/",)
"""The provider's side: it does what a client asks of it, on volumes of its own."""


def test_only_the_files_module_removes_directories_and_nothing_calls_a_volumes_removal() -> None:
    found = []
    for path in sorted((REPOSITORY / "kev").rglob("*.py")):
        name = path.relative_to(REPOSITORY).as_posix()
        if name.startswith("kev/files/") or name.startswith(ITS_OWN_DATA):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("rmtree", "rmdir", "remove_file", "batch_delete"):
                owner = node.value
                if not (isinstance(owner, ast.Name) and owner.id == "files"):
                    found.append(f"{name}:{node.lineno} {node.attr}")
    assert found == []
