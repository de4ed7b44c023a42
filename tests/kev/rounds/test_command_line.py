"""The command line: what is printed where, and the exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import changed, good_spec, write_spec

from kev.rounds.__main__ import main

SPEC = good_spec()


def test_a_good_spec_ends_with_ok_and_0(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_spec(tmp_path / "r201.json", SPEC)
    assert main(["validate", str(path), "--root", str(checkout)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "round 201: ok (3 arms, 2 studies)"
    assert all(line.startswith("!!! warning: ") for line in lines[:-1])


def test_problems_come_last_one_a_line_and_exit_with_1(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = changed(SPEC, "arms", "2b-full", "parent", to="bases")
    spec = changed(spec, "rule", "rank", 0, "order", to="down\x1b[2J")
    path = write_spec(tmp_path / "r201.json", spec)
    assert main(["validate", str(path), "--root", str(checkout)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "arms.2b-full.parent: there is no parent 'bases'; did you mean base?" in lines[-2]
    assert "rule.rank[0].order" in lines[-1]
    assert "\x1b" not in "".join(lines)


def test_archived_files_are_listed_between(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = changed(changed(SPEC, "archive", to="x"), "reads", "far", "suite", to="evals/gone-v1")
    main(["validate", str(write_spec(tmp_path / "r201.json", spec)), "--root", str(checkout)])
    lines = capsys.readouterr().out.splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("archived with round 201"))
    assert "evals/gone-v1/manifest.json is not there" in lines[title + 1]


def test_the_findings_as_data(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_spec(tmp_path / "r201.json", changed(SPEC, "studies", "r201-full", "gpu", to="B300"))
    assert main(["validate", str(path), "--root", str(checkout), "--json"]) == 1
    value = json.loads(capsys.readouterr().out)
    (problem,) = (finding for finding in value["findings"] if finding["severity"] == "problem")
    assert value["ok"] is False
    assert (value["round"], value["arms"], value["studies"]) == (201, 3, 2)
    assert problem["path"] == ["studies", "r201-full", "gpu"]
    assert problem["place"] == "studies.r201-full.gpu"
    assert problem["code"] == "unknown-gpu"
    assert isinstance(problem["line"], int)


@pytest.mark.parametrize("text", ["", "{", "\x00", '{"round": NaN}'])
def test_a_file_that_is_no_json_is_one_line_on_stderr_and_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "r1.json"
    path.write_text(text)
    assert main(["validate", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert str(path) in captured.err


def test_a_file_that_is_not_there_is_1_and_a_bad_command_line_2(tmp_path: Path) -> None:
    assert main(["validate", str(tmp_path / "none.json")]) == 1
    for arguments in ([], ["validate"], ["launched"], ["validate", "x", "--rot", "y"], ["new", "x", "--from", "y"]):
        with pytest.raises(SystemExit) as leave:
            main(arguments)
        assert leave.value.code == 2


def test_the_module_runs_and_loads_nothing_heavy(tmp_path: Path, checkout: Path) -> None:
    path = write_spec(tmp_path / "r201.json", SPEC)
    code = (
        "import sys; from kev.rounds.__main__ import main; "
        f"code = main(['validate', {str(path)!r}, '--root', {str(checkout)!r}]); "
        "print(*{name.partition('.')[0] for name in sys.modules} & {'torch', 'numpy', 'modal', 'textual', 'rich'}); "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["round 201: ok (3 arms, 2 studies)", ""]


def test_paths_are_taken_from_the_checkout_around_the_spec(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_spec(checkout / "experiments" / "rounds" / "r201.json", SPEC)
    assert main(["validate", str(path)]) == 0
    assert "ok" in capsys.readouterr().out
    path.unlink()
