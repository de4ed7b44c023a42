"""A user's eval.py in a process of its own: questions go in and answers come out, a JSON value a line.

`python -m kev.autorl.evaluators.sandbox FILE MEMORY` is that process. What the file prints goes to stderr. It is
started again after a sample that ended it, so that one bad sample spoils no other.
"""

import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kev.text import shorten, visible

MAX_ANSWER = 1_000_000
START_SECONDS = 60


class Failed(Exception):
    """One question has no answer: the file raised, took too long, or ended."""


class Sandbox:
    """The file `path`, asked one thing at a time, with `seconds` for each and `memory` bytes for all."""

    def __init__(self, path: Path, *, seconds: float, memory: int) -> None:
        self.path = path
        self._seconds = seconds
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, what: str, *arguments: Any) -> Any:
        """What the file's function gives. Raises Failed."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps([what, *arguments]).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(self._line(process, self._seconds))
        except (OSError, ValueError):
            self._end()
            raise Failed(f"{what}(): the evaluation ended (out of memory, or by itself)") from None
        if "error" in answer:
            raise Failed(f"{what}(): {answer['error']}")
        return answer["value"]

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            command = [sys.executable, "-P", "-s", "-m", __name__, str(self.path), str(self._memory)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._read = b""
            try:
                started = json.loads(self._line(self._process, START_SECONDS))
            except (OSError, ValueError):
                self._end()
                raise Failed("the file could not be loaded within its memory") from None
            if "error" in started:
                self._end()
                raise Failed(f"the file could not be loaded: {started['error']}")
        return self._process

    def _line(self, process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
        assert process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._read:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                self._end()
                raise Failed(f"took more than {seconds:g} s")
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece or len(self._read) > MAX_ANSWER:
                raise OSError
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:
                        continue  # what was not sent to a dead process is lost, and is meant to be


def _serve(path: Path, memory: int) -> None:
    """Answer questions about the file until the input ends."""
    import resource

    answers = os.dup(1)
    os.dup2(2, 1)  # whatever the file prints must not look like an answer
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def answer(value: dict[str, Any]) -> None:
        os.write(answers, json.dumps(value, allow_nan=False, default=str).encode() + b"\n")

    try:
        functions = _load(path)
    except BaseException as error:
        answer({"error": _words(error)})
        return
    answer({"value": "ready"})
    for line in sys.stdin.buffer:
        what, *arguments = json.loads(line)
        try:
            answer({"value": functions[what](*arguments)})
        except BaseException as error:
            answer({"error": _words(error)})


def _load(path: Path) -> dict[str, Any]:
    described = importlib.util.spec_from_file_location("evaluation", path)
    if described is None or described.loader is None:
        raise ImportError("not a file of Python")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    if not callable(getattr(module, "score", None)):
        raise AttributeError("defines no score(sample, output)")
    return {"score": module.score, "prompt": getattr(module, "prompt", lambda sample: sample["prompt"])}


def _words(error: BaseException) -> str:
    return shorten(visible(f"{type(error).__name__}: {error}"), 500)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
