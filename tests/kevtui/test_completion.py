"""Completion knows every command and option that the parser knows."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kevtui.cli import build_parser
from kevtui.completion import SHELLS, commands, script, targets

KNOWN = list(commands(build_parser()))
BASH = shutil.which("bash")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(shell: str) -> None:
    text = script(shell, KNOWN)
    for item in KNOWN:
        assert item.name in text
        for option, _ in item.options:
            assert option.removeprefix("--") in text


def test_the_hidden_command_is_not_offered() -> None:
    assert "_targets" not in {item.name for item in KNOWN}
    assert {"session", "act", "status", "doctor", "web"} <= {item.name for item in KNOWN}


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [(["do"], {"doctor"}), (["session", "--on"], {"--once"}), (["act", "laun"], {"launch"}),
     (["completion", "z"], {"zsh"}), (["session", "nig"], {"night3"}), (["nothing", "x"], set())],
)  # fmt: skip
def test_bash_completes(words: list[str], expected: set[str], tmp_path: Path) -> None:
    asked = script("bash", KNOWN) + (
        "kevtui() { echo night3; echo r41; }\n"
        f"COMP_WORDS=(kevtui {' '.join(words)}); COMP_CWORD={len(words)}; _kevtui\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    done = subprocess.run([str(BASH), "--norc", "-c", asked], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    assert set(done.stdout.split()) == expected


def test_targets_are_sessions_and_rounds_that_need_no_quoting(tmp_path: Path) -> None:
    assert targets(tmp_path) == set()
    (tmp_path / "runs").mkdir()
    (tmp_path / "experiments" / "rounds").mkdir(parents=True)
    for name in ("night3-state.json", "$(x)-state.json", "a b-state.json", "r41-9b.spawn.json"):
        (tmp_path / "runs" / name).touch()
    for name in ("r41.json", "r41.json.part", "template.json"):
        (tmp_path / "experiments" / "rounds" / name).touch()
    assert targets(tmp_path) == {"night3", "r41"}
