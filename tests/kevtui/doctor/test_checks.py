"""What the doctor makes of a terminal, of tmux, of credentials, of a folder."""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kevtui.doctor import machine, place, terminal
from kevtui.doctor.check import Check, Outcome

NOW = datetime(2026, 9, 1, 3, tzinfo=UTC)
SECRET = "as-very-secret"
TMUX = {"TMUX": "/tmp/tmux-1/default,1,0", "TERM": "tmux-256color"}
GOOD_OPTIONS = (
    "escape-time 10\nset-clipboard external\nfocus-events on\n"
    'terminal-features[0] "xterm*:clipboard:title"\nterminal-features[1] *:RGB\n'
)


def by_name(checks: Iterable[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def screen(environment: Mapping[str, str], *, encoding: str = "utf-8", size: tuple[int, int] = (120, 40)) -> (
    dict[str, Check]
):  # fmt: skip
    return by_name(terminal.terminal(environment, is_terminal=True, encoding=encoding, size=size))


def asked(version: str, server: str = GOOD_OPTIONS, session: str = "allow-passthrough on\n") -> terminal.Ask:
    answers = {"-V": version, "-s": server, "-g": "", "-gw": session}
    return lambda arguments: answers[arguments[-1]]


def test_a_good_terminal_has_nothing_to_fix() -> None:
    found = screen({"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    assert [check.fix for check in found.values() if check.fix] == []


@pytest.mark.parametrize(
    ("environment", "encoding", "size", "name", "outcome"),
    [
        ({"TERM": "dumb"}, "utf-8", (120, 40), "TERM", Outcome.BAD),
        ({}, "utf-8", (120, 40), "TERM", Outcome.BAD),
        ({"TERM": "xterm"}, "utf-8", (120, 40), "colours", Outcome.RISK),
        ({"TERM": "xterm", "NO_COLOR": ""}, "utf-8", (120, 40), "colours", Outcome.INFO),
        ({"TERM": "xterm-256color"}, "ANSI_X3.4-1968", (120, 40), "characters", Outcome.RISK),
        ({"TERM": "xterm-256color"}, "utf-8", (79, 24), "size", Outcome.RISK),
        ({"TERM": "xterm-256color", "SSH_TTY": "/dev/pts/1"}, "utf-8", (120, 40), "SSH", Outcome.INFO),
    ],
)
def test_what_a_terminal_lacks_is_named(
    environment: dict[str, str], encoding: str, size: tuple[int, int], name: str, outcome: Outcome
) -> None:
    check = screen(environment, encoding=encoding, size=size)[name]
    assert check.outcome is outcome
    assert check.fix or outcome is Outcome.INFO


def test_tmux_as_it_should_be_has_nothing_to_fix() -> None:
    found = by_name(terminal.tmux(TMUX, asked("tmux 3.4")))
    assert {check.outcome for check in found.values()} == {Outcome.GOOD}
    assert {"version", "colours", "set-clipboard", "allow-passthrough", "focus-events"} <= found.keys()


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [("escape-time 10", "escape-time 500", "escape-time"), ("focus-events on", "focus-events off", "focus-events"),
     ("set-clipboard external", "set-clipboard off", "set-clipboard"), ("*:RGB", "*:title", "colours")],
)  # fmt: skip
def test_each_setting_of_tmux_that_costs_something_comes_with_its_line(old: str, new: str, name: str) -> None:
    found = by_name(terminal.tmux(TMUX, asked("tmux 3.4", GOOD_OPTIONS.replace(old, new))))
    assert found[name].fix.startswith("tmux set ")
    assert [check.name for check in found.values() if check.fix] == [name]


def test_an_old_tmux_and_one_that_does_not_answer_are_told() -> None:
    assert by_name(terminal.tmux(TMUX, asked("tmux 3.1c")))["version"].outcome is Outcome.RISK
    assert [check.outcome for check in terminal.tmux(TMUX, lambda _: None)] == [Outcome.RISK]
    assert [check.outcome for check in terminal.tmux({}, lambda _: None)] == [Outcome.INFO]


def credentials(text: str | None, home: Path, **environment: str) -> Check:
    if text is not None:
        (home / ".modal.toml").write_text(text)
        (home / ".modal.toml").chmod(0o600)
    return by_name(machine.provider(environment, home))["credentials"]


def test_credentials_are_found_and_never_shown(tmp_path: Path) -> None:
    text = f'[kim]\ntoken_id = "ak-1"\ntoken_secret = "{SECRET}"\nactive = true\n'
    found = [credentials(text, tmp_path)]
    assert found[0].outcome is Outcome.GOOD and "kim" in found[0].found
    found.append(credentials(text, tmp_path, MODAL_PROFILE="lee"))
    assert found[-1].outcome is Outcome.BAD
    (tmp_path / ".modal.toml").chmod(0o644)
    found += machine.provider({}, tmp_path)
    assert found[-1].outcome is Outcome.RISK and found[-1].fix.startswith("chmod 600")
    found.append(credentials(None, tmp_path, MODAL_TOKEN_ID="ak-2", MODAL_TOKEN_SECRET=SECRET))
    assert found[-1].outcome is Outcome.GOOD
    assert SECRET not in repr(found) and "ak-" not in repr(found)


@pytest.mark.parametrize(
    "text", ["", "not toml [", "[kim]\ntoken_id = 'x'\n", "kim = 3\n", "\x00", '[kim]\nx = "\udcff"']
)
def test_credentials_that_say_nothing_are_bad_and_no_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / ".modal.toml").write_bytes(text.encode(errors="surrogateescape"))
    check = credentials(None, tmp_path)
    assert check.outcome is Outcome.BAD and check.fix


def test_the_emulator_is_called_simulated(tmp_path: Path) -> None:
    check = by_name(machine.provider({"MODAL_SERVER_URL": "http://127.0.0.1:5000"}, tmp_path))["address"]
    assert "simulated" in check.found


@pytest.mark.parametrize("server", ["https://localhost.example.org", "https://127.0.0.1.example.org/x"])
def test_an_address_that_only_looks_like_this_machine_is_not_called_simulated(tmp_path: Path, server: str) -> None:
    check = by_name(machine.provider({"MODAL_SERVER_URL": server}, tmp_path))["address"]
    assert "simulated" not in check.found


def test_an_address_that_is_none_is_told_and_no_traceback(tmp_path: Path) -> None:
    check = by_name(machine.provider({"MODAL_SERVER_URL": "http://[::1"}, tmp_path))["address"]
    assert check.outcome is Outcome.BAD and check.fix


def test_a_clock_that_is_off_is_told() -> None:
    assert [check.outcome for check in machine.clock(NOW, "yes")] == [Outcome.GOOD]
    assert [check.outcome for check in machine.clock(NOW, None)] == [Outcome.GOOD]
    assert [check.outcome for check in machine.clock(NOW, "no")] == [Outcome.RISK]
    assert [check.outcome for check in machine.clock(datetime(1970, 1, 2, tzinfo=UTC), "yes")] == [Outcome.BAD]


def test_low_limits_of_the_system_come_with_their_line() -> None:
    found = by_name(machine.events({"max_user_instances": 4, "max_user_watches": 100_000}))
    assert "sysctl" in found["max_user_instances"].fix
    assert found["max_user_watches"].outcome is Outcome.GOOD
    assert list(machine.events({})) == []


def test_a_folder_is_read_as_it_is(tmp_path: Path) -> None:
    assert by_name(place.place(tmp_path, "", 0.0))["runs"].outcome is Outcome.INFO
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "night-state.json").write_text("{}")
    os.utime(runs / "night-state.json", (1000.0, 1000.0))
    mounts = f"/dev/sda / ext4 rw 0 0\nhost:/x {runs} fuse.sshfs rw 0 0\n"
    found = by_name(place.place(tmp_path, mounts, 1000.0))
    assert found["runs"].outcome is Outcome.INFO and "read-only" in found["runs"].found
    assert "polling" in found["events"].found
    assert "dates" not in found
    assert by_name(place.place(tmp_path, "", 900.0))["dates"].outcome is Outcome.RISK
    assert [path.name for path in runs.iterdir()] == ["night-state.json"], "looking writes nothing"


def test_of_nested_mounts_the_nearest_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a b" / "runs"
    inner.mkdir(parents=True)
    escaped = str(tmp_path / "a b").replace(" ", "\\040")
    mounts = f"/dev/sda / ext4 rw 0 0\nhost:/x {escaped} nfs4 rw 0 0\n/dev/sdb {escaped}x xfs rw 0 0\nbroken\n"
    assert place.kind_of(inner, mounts) == "nfs4"
    assert place.kind_of(tmp_path, mounts) == "ext4"
    assert place.kind_of(tmp_path, "") == ""


def test_a_hook_that_is_not_there_is_a_risk_that_is_named() -> None:
    assert machine.hook(("to-phone", "--quick"), "/usr/bin/to-phone").outcome is Outcome.GOOD
    missing = machine.hook(("to-phone",), None)
    assert missing.outcome is Outcome.RISK and "to-phone" in missing.found and missing.fix
