"""The command as scripts meet it: pipes, encodings, closed and full outputs, exit statuses, what it loads."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from kev import files
from kev.clock import SystemClock
from kev.records.base import write_record
from kev.records.session import SessionState, SessionStudy, SpendReading
from kev.records.spawn import SpawnRecord
from kev.records.watch import TrialState, WatchRecord
from kevtui import exit_codes
from kevtui.cli import EPILOG, build_parser, main

REPOSITORY = Path(__file__).parents[2]
KEVTUI = [sys.executable, "-m", "kevtui"]
FULL = Path("/dev/full")
HOSTILE = "[/] [@click=app.quit]here[/] [a-z] \\ \x1b]0;t\x07\x1b[2J \x9b31m 9%\r99%\x08 a\nb \ud83d é"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def environment(**changes: str) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **changes}


def kevtui(*arguments: str, **changes: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*KEVTUI, *arguments], capture_output=True, env=environment(**changes), timeout=60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A session with one running study, one failed one with a hostile error, and a state file."""
    runs = tmp_path / "runs"
    for study, status, error in (("r41-9b", "running", None), ("r41-4b", "failed", HOSTILE)):
        write_record(
            runs / f"{study}.spawn.json",
            SpawnRecord(name=study, calls={"trial-0": f"fc-{study}"}, bound_usd=Decimal("50.12"), timeout=10800),
        )
        state = TrialState(status=status, launched=False, transient=0, call=f"fc-{study}", error=error)
        write_record(runs / f"{study}.watch.json", WatchRecord(calls={"trial-0": state}))
    studies = {"r41-9b": SessionStudy(bound_usd=Decimal("50.12"), calls={"trial-0": "fc-r41-9b"}, status="running")}
    readings = [SpendReading(at=SystemClock().now().isoformat(), metered_usd=Decimal("150.25"))]
    write_record(
        runs / "night-state.json",
        SessionState(
            session="night", authorization_usd=Decimal("1000"), reserve_usd=Decimal("100"),
            baseline_usd=Decimal("50.123456789"), readings=readings, studies=studies,
        ),
    )  # fmt: skip
    return tmp_path


def test_money_in_the_json_is_exact(root: Path) -> None:
    done = kevtui("session", "night", "--root", str(root), "--json")
    assert done.returncode == exit_codes.FINE, done.stderr
    money = json.loads(done.stdout)["money"]
    assert {
        name: money[name] for name in ("authorization", "baseline", "metered", "spent", "committed", "headroom")
    } == {
        "authorization": "1000",
        "baseline": "50.123456789",
        "metered": "150.25",
        "spent": "100.126543211",
        "committed": "50.12",
        "headroom": "749.753456789",
    }


@pytest.mark.parametrize("way", ["--once", "--json"])
def test_hostile_text_comes_out_readable_and_harmless(root: Path, way: str) -> None:
    done = kevtui("session", str(root), way)
    assert done.returncode == exit_codes.FINE, done.stderr
    text = done.stdout.decode()
    assert CONTROL.search(text) is None
    for whole in ("[/] [@click=app.quit]here[/] [a-z]",):
        assert whole in text
    for escaped in (r"\x1b[2J", r"\r99%", r"a\nb", r"\ud83d") if way == "--once" else (r"\u001b[2J", r"\r99%", r"a\nb"):
        assert escaped in text


@pytest.mark.parametrize("way", ["--once", "--json"])
def test_an_ascii_output_is_no_error(root: Path, way: str) -> None:
    done = kevtui("session", str(root), way, PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0", LC_ALL="C")
    assert (done.returncode, done.stderr) == (exit_codes.FINE, b"")
    assert done.stdout.isascii()
    assert b"r41-9b" in done.stdout


def test_a_reader_that_leaves_early_is_no_error(root: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*KEVTUI, "session", str(root), "--once"], stdout=writer, stderr=subprocess.PIPE, env=environment(), timeout=60
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (exit_codes.FINE, b"")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
@pytest.mark.parametrize("arguments", [["session", ".", "--json"], ["session", ".", "--once"], ["--help"]])
def test_a_full_device_is_one_line_and_a_failure(root: Path, arguments: list[str]) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [*KEVTUI, *arguments], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60, cwd=root
        )
    assert done.returncode == exit_codes.OUTPUT_LOST
    assert done.stderr.count(b"\n") == 1
    assert b"no space left" in done.stderr


def test_a_closed_output_is_one_line_and_a_failure(root: Path) -> None:
    command = 'exec "$@" >&-'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *KEVTUI, "session", str(root), "--once"],
        stderr=subprocess.PIPE, env=environment(), timeout=60,
    )  # fmt: skip
    assert done.returncode == exit_codes.OUTPUT_LOST
    assert done.stderr.count(b"\n") == 1


def test_closed_output_and_errors_still_end_with_the_status(root: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *KEVTUI, "session", str(root), "--json"], env=environment(), timeout=60
    )
    assert done.returncode == exit_codes.OUTPUT_LOST


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((), exit_codes.USAGE),
        (("session",), exit_codes.USAGE),
        (("session", "x", "--once", "--json"), exit_codes.USAGE),
        (("session", "x", "--nonsense"), exit_codes.USAGE),
        (("session", "r99", "--once"), exit_codes.NOTHING),
        (("session", "no/such/file", "--json"), exit_codes.NOTHING),
        (("session", "x", "--root", "/no/such/folder", "--once"), exit_codes.NOTHING),
        (("--help",), exit_codes.FINE),
        (("session", "--help"), exit_codes.FINE),
        (("--version",), exit_codes.FINE),
    ],
)
def test_the_exit_status_is_the_documented_one(root: Path, arguments: tuple[str, ...], status: int) -> None:
    done = subprocess.run([*KEVTUI, *arguments], capture_output=True, env=environment(), cwd=root, timeout=60)
    assert done.returncode == status, done.stderr
    if status != exit_codes.FINE:
        assert done.stdout == b""
        assert done.stderr.startswith(b"kevtui: ")
        assert done.stderr.count(b"\n") == 1, "one line that can be acted on"


@pytest.mark.parametrize("arguments", [("session", "\x1b[2J\x9b"), ("status", "x", "\x1b]0;t\x07"), ("\x1b[2J",)])
def test_what_was_typed_is_repeated_without_its_control_characters(root: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run([*KEVTUI, *arguments], capture_output=True, env=environment(), cwd=root, timeout=60)
    assert done.returncode in (exit_codes.USAGE, exit_codes.NOTHING)
    assert CONTROL.search(done.stderr.decode()) is None
    assert r"\x1b" in done.stderr.decode()


def test_a_file_that_cannot_be_believed_fails_only_the_strict(root: Path) -> None:
    files.write_atomic(root / "runs" / "r41-8b.spawn.json", b'{"name": "r41-8b", "calls"')
    relaxed = kevtui("session", str(root), "--once")
    strict = kevtui("session", str(root), "--once", "--strict")
    assert (relaxed.returncode, strict.returncode) == (exit_codes.FINE, exit_codes.FINDINGS)
    assert b"r41-8b.spawn.json" in strict.stdout
    assert b"cut short" in strict.stdout


def test_plain_is_the_default_for_a_pipe_said_once_and_ended_by_an_interrupt(root: Path) -> None:
    running = subprocess.Popen(
        [*KEVTUI, "session", "night", "--root", str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    assert running.stdout is not None
    lines = []
    while not (lines and b" summary: " in lines[-1]):
        lines.append(running.stdout.readline())
        assert lines[-1], "ended before its first summary"
    running.send_signal(signal.SIGINT)
    rest, errors = running.communicate(timeout=60)
    assert running.returncode == exit_codes.FINE
    assert errors.count(b"\n") == 1
    assert b"not a terminal" in errors
    text = b"".join(lines) + rest
    assert CONTROL.search(text.decode()) is None
    assert all(re.match(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \w", line) for line in text.splitlines())


def test_a_change_on_the_disk_becomes_a_line(root: Path) -> None:
    running = subprocess.Popen(
        [*KEVTUI, "session", "night", "--root", str(root), "--plain"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    assert running.stdout is not None
    try:
        while b" summary: " not in running.stdout.readline():
            pass
        state = TrialState(status="done", launched=True, transient=0, call="fc-r41-9b")
        write_record(root / "runs" / "r41-9b.watch.json", WatchRecord(calls={"trial-0": state}))
        while b" trial r41-9b/trial-0: done" not in (line := running.stdout.readline()):
            assert line
        assert b"(was running)" in line
    finally:
        running.kill()
        running.communicate()


def loaded(*arguments: str) -> set[str]:
    """The modules that a run of the command has loaded at its end."""
    code = (
        "import sys; from kevtui.cli import main; status = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=environment(), timeout=60)
    assert done.returncode == exit_codes.FINE, done.stderr
    return set(done.stderr.decode().split())


def test_once_loads_neither_a_screen_nor_an_event_loop_nor_a_file_watcher(root: Path) -> None:
    modules = loaded("session", "night", "--root", str(root), "--once")
    assert not {name.partition(".")[0] for name in modules} & {
        "textual",
        "asyncio",
        "watchfiles",
        "numpy",
        "modal",
        "torch",
    }
    unneeded = {"rich.console", "rich.text", "statistics", "difflib", "kev.records.verdict", "kev.records.lease"}
    assert not modules & unneeded, "nothing is drawn by rich, and a kind of record is loaded when its file is met"


def test_json_loads_nothing_that_draws(root: Path) -> None:
    modules = loaded("session", "night", "--root", str(root), "--json")
    assert not {name.partition(".")[0] for name in modules} & {"textual", "asyncio", "watchfiles", "rich", "numpy"}


@pytest.mark.parametrize("ways", [(), ("--plain", "--hook")])
def test_every_mistake_in_the_settings_is_a_line_of_its_own(
    root: Path, ways: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "kevtui").mkdir()
    (root / "kevtui" / "config.toml").write_text("theme = 3\nascii = 1\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(root))
    monkeypatch.setattr("kevtui.session_command.no_screen", lambda _: "")
    monkeypatch.setattr("gc.disable", lambda: None)
    assert main(["session", "night", "--root", str(root), *ways]) == exit_codes.USAGE
    assert [line.split(": ")[2] for line in capsys.readouterr().err.splitlines()] == ["ascii", "theme"]


def test_help_reads_no_records() -> None:
    code = "import sys; import kevtui.cli; kevtui.cli.build_parser(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), check=True, text=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert not tops & {"pydantic", "orjson", "rich", "textual", "asyncio"}


def test_a_start_makes_the_options_of_one_command_and_no_other() -> None:
    code = "import sys; import kevtui.cli; kevtui.cli.build_parser().parse_args(['status', 'r1']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), check=True, text=True)
    assert not set(done.stdout.split()) & {"kevtui.act_command", "kevtui.actions", "kevtui.keymap"}


def test_the_exit_statuses_are_told_in_help_and_in_the_readme() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    for code, meaning in exit_codes.MEANINGS:
        assert f"{code} {meaning}" in EPILOG
        assert re.search(rf"^\| {code} \| ", readme, re.MULTILINE), f"status {code} is not in the README"
    assert EPILOG.split()[0] in build_parser().format_help()


def test_every_option_of_session_is_explained() -> None:
    text = build_parser().parse_args
    assert text(["session", "r1", "--no-mouse"]).mouse is False
    assert text(["session", "r1"]).mouse is None


def test_a_demo_that_leaves_everything_to_keys_needs_a_terminal() -> None:
    done = kevtui("demo", "--by-hand")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"--by-hand leaves everything to keys" in done.stderr
