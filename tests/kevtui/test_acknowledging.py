"""What was acknowledged is on disk, in the journal, in the JSON, and the same by key and by command."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kev.clock import SystemClock
from kev.errors import KevError
from kev.session import events_path, read_events
from kevtui.actions.standing import MOST_LINES, StandingFile
from kevtui.cli import main
from kevtui.observe.observer import Observer
from kevtui.observe.snapshot import Alert, Severity
from kevtui.observe.target import resolve

LOST = Alert("loss-not-finite", Severity.WARNING, "s/trial-0", "lost", condition="step 7")
REPOSITORY = Path(__file__).parents[2]
DAMAGED = "damaged:runs/r9-b.spawn.json"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session with a damaged ledger, which is two alerts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    runs = tmp_path / "runs"
    runs.mkdir()
    reading = {"at": "2026-03-28T00:30:00Z", "metered_usd": 6, "source": "a test"}
    state = {"session": "night", "authorization_usd": 100, "baseline_usd": 5, "readings": [reading], "studies": {}}
    (runs / "night-state.json").write_text(json.dumps(state))
    (runs / "r9-b.spawn.json").write_text("{")
    return tmp_path


@pytest.fixture
def standing(root: Path) -> StandingFile:
    return StandingFile(root / "runs", "night", root / "runs" / "night-state.json", SystemClock())


def journal(root: Path) -> list[tuple[str, str, str]]:
    path = events_path(root / "runs" / "night-state.json")
    return [(e.severity, e.subject, e.text) for e in read_events(path).events] if path.exists() else []


def act(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["act", "acknowledge", "night", "--root", str(root), "--json", *arguments])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, report


def acknowledged(root: Path) -> dict[str, bool]:
    observer = Observer(resolve("night", root=root, cwd=root))
    try:
        return {alert.id: alert.acknowledged for alert in observer.observe().alerts}
    finally:
        observer.close()


def test_the_command_acknowledges_once_on_record_and_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert acknowledged(root)[DAMAGED] is False
    code, report = act(capsys, root, "--alert", DAMAGED, "--reason", "known since noon")
    assert (code, report["changed"], report["alerts"], report["state"]) == (0, True, [DAMAGED], "done")
    assert (report["before"], report["after"], report["reason"]) == ("raised", "acknowledged", "known since noon")
    assert acknowledged(root)[DAMAGED] is True
    code, report = act(capsys, root, "--alert", DAMAGED)
    assert (code, report["changed"], report["state"]) == (0, False, "nothing to do")
    ((severity, subject, text),) = journal(root)
    assert (severity, subject) == ("info", "runs/r9-b.spawn.json")
    assert text.startswith("damaged acknowledged: ") and text.endswith("; why: known since noon")
    code, report = act(capsys, root, "--alert", DAMAGED, "--withdraw")
    assert report["changed"] and acknowledged(root)[DAMAGED] is False
    assert "acknowledgement withdrawn" in journal(root)[-1][2]


def test_all_are_acknowledged_together(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = act(capsys, root, "--alert", "all")
    assert code == 0 and set(report["alerts"]) == set(acknowledged(root))
    assert all(acknowledged(root).values())
    main(["status", "night", "--root", str(root)])
    assert "alert" not in capsys.readouterr().out
    main(["session", "night", "--root", str(root), "--json"])
    alerts = json.loads(capsys.readouterr().out)["alerts"]
    assert {alert["id"]: alert["acknowledged"] for alert in alerts} == acknowledged(root)
    main(["session", "night", "--root", str(root), "--once"])
    assert "acknowledged" in capsys.readouterr().out


def test_a_dry_run_and_a_read_only_one_change_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = act(capsys, root, "--alert", DAMAGED, "--dry-run")
    assert (code, report["changed"], report["alerts"]) == (0, False, [DAMAGED])
    code, report = act(capsys, root, "--alert", DAMAGED, "--read-only")
    assert code == 5 and "--read-only" in report["text"]
    assert sorted(path.name for path in (root / "runs").iterdir()) == ["night-state.json", "r9-b.spawn.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--alert ID"),
        (("--alert", "no-such"), 3, "no alert has that id; there are committed-incomplete:money"),
        (("--alert", "no-such", "--withdraw"), 3, "no such alert is on record"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    got, report = act(capsys, root, *arguments)
    assert got == code and report["state"] == "refused" and words in report["text"]


def test_one_that_only_a_dashboard_saw_can_be_acknowledged_too(
    root: Path, standing: StandingFile, capsys: pytest.CaptureFixture[str]
) -> None:
    standing.keep([LOST])
    code, report = act(capsys, root, "--alert", LOST.id)
    assert (code, report["alerts"]) == (0, [LOST.id])
    mark = standing.standing()[LOST.id].acknowledged
    assert mark is not None and (mark.severity, mark.condition) == ("warning", "step 7")


def test_the_journal_tells_what_is_raised_what_is_graver_and_what_is_over_once(
    root: Path, standing: StandingFile
) -> None:
    assert standing.keep([LOST])
    assert not standing.keep([replace(LOST, text="lost, for longer")])
    standing.acknowledge([LOST])
    assert standing.keep([replace(LOST, severity=Severity.CRITICAL)])
    assert standing.standing()[LOST.id].acknowledged is None, "it is graver than what was known"
    assert standing.keep([])
    assert journal(root) == [
        ("warning", "s/trial-0", "loss-not-finite raised: lost"),
        ("info", "s/trial-0", "loss-not-finite acknowledged: lost"),
        ("critical", "s/trial-0", "loss-not-finite now critical: lost"),
        ("info", "s/trial-0", "loss-not-finite over: lost"),
    ]


def test_a_hundred_at_once_are_a_few_lines_and_a_number(root: Path, standing: StandingFile) -> None:
    standing.keep([replace(LOST, subject=f"s/trial-{number}") for number in range(100)])
    assert len(journal(root)) == MOST_LINES + 1
    assert f"and {100 - MOST_LINES} more alerts" in journal(root)[-1][2]


def test_a_damaged_file_is_named_and_not_written_over(root: Path, standing: StandingFile) -> None:
    path = root / "runs" / "night-alerts.json"
    path.write_text('{"alerts": {"x": {"raised_at": "never"}}}')
    with pytest.raises(KevError, match=r"night-alerts\.json.*remove it"):
        standing.keep([LOST])
    assert "never" in path.read_text() and journal(root) == []


def test_two_that_acknowledge_at_once_lose_nothing(root: Path) -> None:
    def work(number: int) -> None:
        mine = StandingFile(root / "runs", "night", None, SystemClock())
        for each in range(10):
            mine.acknowledge([replace(LOST, subject=f"{number}/{each}")])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(StandingFile(root / "runs", "night", None, SystemClock()).standing()) == 40


def test_without_a_session_there_is_a_file_and_no_journal(root: Path) -> None:
    StandingFile(root / "runs", None, None, SystemClock()).keep([LOST])
    assert (root / "runs" / "alerts.json").exists() and journal(root) == []


def test_hostile_texts_survive_the_file_and_the_command(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x\x1b]0;t\x07[red]\u202e"
    (root / "runs" / f"{name}.spawn.json").write_text("{")
    wanted = f"damaged:runs/{name}.spawn.json"
    code, report = act(capsys, root, "--alert", wanted)
    assert code == 0 and report["alerts"] == [wanted]
    assert acknowledged(root)[wanted] is True
    main(["act", "acknowledge", "night", "--root", str(root), "--alert", wanted, "--withdraw"])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b]0;t" in out


def test_lines_alone_run_the_hook_where_they_are_asked_to(root: Path, tmp_path: Path) -> None:
    told, folder = tmp_path / "told.json", tmp_path / "config" / "kevtui"
    folder.mkdir(parents=True)
    code = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"
    hook = json.dumps([sys.executable, "-c", code, str(told)])
    command = [sys.executable, "-m", "kevtui", "session", "night", "--root", str(root), "--plain", "--hook"]
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 2 and "names none" in done.stderr
    (folder / "config.toml").write_text(f"[alerts]\nhook = {hook}\n")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if " summary: " in line:
                break
        assert not told.exists(), "what was there before is in the lines, and no news"
        (root / "runs" / "r9-c.spawn.json").write_text("{")
        for line in process.stdout:
            if "alert damaged runs/r9-c.spawn.json" in line or "finding runs/r9-c.spawn.json" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0
    alerts = json.loads(told.read_bytes())["alerts"]
    assert [alert["id"] for alert in alerts] == ["damaged:runs/r9-c.spawn.json"]
    done = subprocess.run([*command[:-2], "--once", "--hook"], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 2 and "--hook belongs to --plain" in done.stderr
