"""The dashboard on poor terminals, and over files that try to speak to the terminal."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pseudo_terminal import PseudoTerminal
from session_files import SessionFiles

Start = Callable[..., PseudoTerminal]
SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


@pytest.fixture
def session(tmp_path: Path) -> SessionFiles:
    return SessionFiles(tmp_path).write()


def look_around(terminal: PseudoTerminal) -> None:
    """Open what can be opened, so that all of it is painted."""
    terminal.wait_for("study-001/1")
    terminal.press("l")
    terminal.wait_for("following")
    terminal.press("\x1b")
    terminal.wait_for(lambda: "following" not in terminal.text)
    terminal.press("?")
    terminal.wait_for("escape closes")
    terminal.press("\x1b")
    terminal.wait_for(lambda: "escape closes" not in terminal.text)
    terminal.press("z")
    terminal.wait_until_quiet(1.0)


def colour_codes(raw: bytearray) -> set[str]:
    """Each colour asked for: "31", "38;5", "48;2"; the ones that reset a colour are none."""
    found = set()
    for match in SGR.finditer(bytes(raw)):
        codes = iter(match[1].decode().replace(":", ";").split(";"))
        for code in codes:
            if code in ("38", "48", "58"):
                kind = next(codes, "")
                found.add(f"{code};{kind}")
                for _ in range(1 if kind == "5" else 3):
                    next(codes, None)
            elif code and (30 <= int(code) <= 37 or 40 <= int(code) <= 47 or 90 <= int(code) <= 107):
                found.add(code)
    return found


def test_the_colours_are_seen_where_there_are_some(session: SessionFiles, dashboard: Start) -> None:
    with dashboard(session.root) as terminal:
        look_around(terminal)
        assert "38;2" in colour_codes(terminal.raw)


def test_no_color_means_none(session: SessionFiles, dashboard: Start) -> None:
    with dashboard(session.root, env={"NO_COLOR": "1"}) as terminal:
        look_around(terminal)
        assert colour_codes(terminal.raw) == set()


def test_a_terminal_of_sixteen_colours_is_asked_for_no_other(session: SessionFiles, dashboard: Start) -> None:
    with dashboard(session.root, env={"TERM": "xterm", "COLORTERM": None}) as terminal:
        look_around(terminal)
        codes = colour_codes(terminal.raw)
        assert codes and not {code for code in codes if ";" in code}


def test_with_ascii_not_one_byte_is_outside_it(session: SessionFiles, dashboard: Start) -> None:
    with session.log(0, 0).open("ab") as stream:
        stream.write("zurück – 日本 ✓\n".encode())
    with dashboard(session.root, "--ascii") as terminal:
        look_around(terminal)
        terminal.wait_for("study-001/1")
        assert bytes(terminal.raw).isascii()


HOSTILE = {
    "title": b"\x1b]2;TAKEN-OVER\x07",
    "clipboard": b"\x1b]52;c;VEFLRU4=\x07",
    "clear": b"\x1b[2JWIPED",
    "one byte CSI": b"\x9b31mRED",
    "carriage return": b"harmless\rHIDDEN",
    "backspace": b"abc\x08\x08\x08XYZ",
    "link": b"\x1b]8;;http://example.invalid\x07CLICK",
    "not UTF-8": b"\xff\xfeBYTES",
}


def test_no_line_of_a_log_reaches_the_terminal_raw(session: SessionFiles, dashboard: Start) -> None:
    lines = [*HOSTILE.values(), b"[bold red]MARKUP[/] [/nothing] [@click=app.quit]GO[/]", b"x" * 10_000_000]
    session.log(0, 0).write_bytes(session.log(0, 0).read_bytes() + b"\n".join(reversed(lines)) + b"\n")
    with dashboard(session.root, columns=160, rows=50) as terminal:
        terminal.wait_for("study-001/1")
        terminal.press("l")
        terminal.wait_for("TAKEN-OVER")
        terminal.wait_until_quiet(1.0)
        text = terminal.text
        for name, sequence in HOSTILE.items():
            assert sequence not in terminal.raw, name
        for shown in (
            "\\x1b]2;TAKEN-OVER\\x07",
            "\\x1b[2JWIPED",
            "\\x9b31mRED",
            "harmless\\rHIDDEN",
            "\\xff\\xfeBYTES",
        ):
            assert shown in text
        assert "[bold red]MARKUP[/] [/nothing] [@click=app.quit]GO[/]" in text


def test_a_hostile_error_in_a_record_is_text(session: SessionFiles, dashboard: Start) -> None:
    watch = session.root / "runs" / "study-000.watch.json"
    record = watch.read_text().replace('"status": "running"', '"status": "failed", "error": "[/x]\\u001b[2JWIPED"', 1)
    watch.write_text(record)
    with dashboard(session.root, columns=160, rows=50) as terminal:
        terminal.wait_for("study-001/1")
        terminal.press("\r")
        terminal.wait_for("last log line")
        assert "WIPED" in terminal.text and b"\x1b[2JWIPED" not in terminal.raw


def test_the_terminal_knows_its_size_better_than_the_environment(session: SessionFiles, dashboard: Start) -> None:
    with dashboard(session.root, columns=160, rows=50, env={"COLUMNS": "80", "LINES": "24"}) as terminal:
        terminal.wait_for("study-001/1")
        assert "quit" in terminal.text.split("\n")[49]
        terminal.resize(120, 40)
        terminal.wait_for(lambda: "quit" in terminal.text.split("\n")[39])
