"""Tests in a real pseudo-terminal, which need /proc to measure with."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from pseudo_terminal import HAS_PROC, PseudoTerminal
from session_files import NAME

REPOSITORY = Path(__file__).parent.parent.parent
SMALL_APP = Path(__file__).parent / "small_app.py"

collect_ignore_glob = [] if HAS_PROC else ["test_*.py"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {step}\n" for step in range(1, 101)))
    return path


@pytest.fixture
def small_app(log: Path) -> Callable[..., PseudoTerminal]:
    """Starts the small app on `log` in a terminal."""

    def start(*arguments: str, **terminal: Any) -> PseudoTerminal:
        env = {"PYTHONPATH": str(REPOSITORY)} | terminal.pop("env", {})
        argv = [sys.executable, str(SMALL_APP), str(log), *arguments]
        return PseudoTerminal(argv, env=env, cwd=log.parent, **terminal)

    return start


@pytest.fixture
def dashboard() -> Callable[..., PseudoTerminal]:
    """Starts the dashboard over the session files under a root, in a terminal."""

    def start(root: Path, *arguments: str, **terminal: Any) -> PseudoTerminal:
        env = {"PYTHONPATH": str(REPOSITORY)} | terminal.pop("env", {})
        argv = [sys.executable, "-m", "kevtui", "session", NAME, "--root", str(root), "--no-mouse", *arguments]
        return PseudoTerminal(argv, env=env, cwd=root, **terminal)

    return start
