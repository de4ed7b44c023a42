"""What a command prints reaches any terminal or pipe, or the command says that it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import sys
from kev.console import run
from kev.errors import Refused

def many():
    for number in range(20000):
        print(f"{number} \\u2713 done")
    return 3

def refuse():
    raise Refused("no\\x1b[2J")

def missing():
    open("/nonexistent/file")

def interrupt():
    raise KeyboardInterrupt

sys.exit(run({"many": many, "refuse": refuse, "interrupt": interrupt, "missing": missing}[sys.argv[1]]))
"""


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    script = command.replace("PROGRAM", '"$PYTHON" -c "$CODE"')
    variables = {**os.environ, "PYTHON": sys.executable, "CODE": PROGRAM, "PYTHONPATH": str(REPOSITORY), **environment}
    return subprocess.run(["bash", "-c", script], capture_output=True, env=variables, check=False)


def test_the_commands_own_exit_code_is_kept() -> None:
    assert shell("PROGRAM many > /dev/null").returncode == 3


def test_a_reader_that_stops_reading_sees_no_traceback() -> None:
    done = shell("PROGRAM many | head -1; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == "0 ✓ done\n".encode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device on this system")
def test_output_that_cannot_be_written_is_one_line_and_no_success() -> None:
    done = shell("PROGRAM many > /dev/full")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"no space left" in done.stderr


def test_a_closed_output_is_one_line_and_no_success() -> None:
    done = shell("PROGRAM many >&-")
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1


def test_a_terminal_without_the_letters_gets_escapes() -> None:
    done = shell("PROGRAM many | head -1", PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0", LC_ALL="C")
    assert done.stdout == b"0 \\u2713 done\n"


def test_a_refusal_is_one_safe_line_and_1() -> None:
    done = shell("PROGRAM refuse")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"no\\x1b[2J\n")


def test_an_interruption_is_130() -> None:
    assert shell("PROGRAM interrupt").returncode == 130


def test_a_defect_is_not_taken_for_a_failure_of_the_output() -> None:
    done = shell("PROGRAM missing")
    assert b"Traceback" in done.stderr


SAVES = """
import sys
from pathlib import Path
from kev import files
from kev.console import run

ways = {
    "whole": lambda path: files.write_atomic(path, b"x" * 9),
    "new": lambda path: files.create_exclusive(path, b"x" * 9),
    "line": lambda path: files.append(path, b"x" * 9 + b"\\n"),
    "lock": lambda path: files.locked(path).__enter__(),
}
sys.exit(run(lambda: ways[sys.argv[1]](Path("kept.txt")) or 0))
"""


@pytest.mark.parametrize("way", ["whole", "new", "line", "lock"])
def test_a_file_that_takes_nothing_more_is_named_and_not_taken_for_the_output(tmp_path: Path, way: str) -> None:
    done = shell(f"cd {tmp_path}; ulimit -f 0; PROGRAM {way}", CODE=SAVES)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "kept.txt: cannot be written or read (File too large); put that right, and run it again\n"
    )


MAKES = """
import sys
from pathlib import Path
from kev.console import run

def make():
    sys.stdout.write("made")
    Path("made").touch()
    return 0

sys.exit(run(make))
"""


def test_what_a_command_does_is_done_with_a_closed_output_too(tmp_path: Path) -> None:
    done = shell(f"cd {tmp_path}; PROGRAM >&-", CODE=MAKES)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"Traceback" not in done.stderr and (tmp_path / "made").exists()


@pytest.mark.parametrize("program", ["leaderboard", "compare --studies a --reference runs/a/b"])
def test_looking_across_studies_reaches_any_output_or_says_that_it_does_not(tmp_path: Path, program: str) -> None:
    (tmp_path / "runs" / "a" / "b").mkdir(parents=True)
    command = f'"$PYTHON" -m kev.autoresearch {program} --root {tmp_path}'
    ascii_only = {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "LC_ALL": "C"}
    for redirected in ("", ">&-", *([">/dev/full"] if Path("/dev/full").exists() else [])):
        done = shell(f"{command} {redirected}", **ascii_only)
        assert b"Traceback" not in done.stderr and done.stdout.isascii()
        assert done.stderr.count(b"\n") == (done.returncode != 0), done.stderr
        assert done.returncode == 1 or not redirected


@pytest.mark.parametrize("program", ["kev.autorl --help", "kevtui.settings", "kevtui.headless.schema"])
def test_what_only_prints_says_where_it_could_not_and_lets_a_reader_go(program: str) -> None:
    for redirected in (">&-", *([">/dev/full"] if Path("/dev/full").exists() else [])):
        done = shell(f'"$PYTHON" -m {program} {redirected}')
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
    done = shell(f'"$PYTHON" -m {program} | head -1')
    assert done.stdout.count(b"\n") == 1 and done.stderr == b""
