"""`python -m kev.demo DIR [--fast]`: a real small round on this machine, without a screen.

Each phase is a JSON line on the output: {"phase", "text"}. Without --attended it ends when a stage of the candidate
waits to be confirmed; with it, it stays for as long as its input is open, so that the stage can be.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kev import files
from kev.console import run
from kev.errors import UsageError


class Leave(BaseException):
    """This process was told to go."""


def main(arguments: list[str] | None = None) -> int:
    """Play the demo. 0 with a candidate, 3 if the read-out has none, 1 for a failure."""
    parser = argparse.ArgumentParser(prog="python -m kev.demo", description=__doc__)
    parser.add_argument("root", type=Path, metavar="DIR", help="a folder that is new or empty")
    parser.add_argument("--fast", action="store_true", help="smaller, for machines that only want to know")
    parser.add_argument("--by-hand", action="store_true", help="open, launch, continue and read nothing: a person does")
    parser.add_argument("--attended", action="store_true", help="stay until the input closes, and end with it")
    parser.add_argument("--temporary", action="store_true", help="remove DIR at the end")
    given = parser.parse_args(arguments)
    return run(lambda: _play(given))


def _play(given: argparse.Namespace) -> int:
    from kev.demo import plan
    from kev.demo.place import Place
    from kev.demo.play import Play

    root = given.root.absolute()
    if files.list_names(root):
        raise UsageError(f"{root} is not empty; name a new folder")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    if given.attended:
        threading.Thread(target=_leave_with_input, name="input", daemon=True).start()
    try:
        with _cleared(root, temporary=given.temporary):
            play = Play(Place(root, plan.FAST if given.fast else plan.FULL), _say)
            if given.by_hand:
                play.hand_over()
            play.run()
            found = "candidate" in play.seconds
            if found:
                _say("confirm", play.confirm_command())
            if given.attended:
                play.stay()
            return 0 if found else 3
    except Leave:
        return 0


@contextmanager
def _cleared(root: Path, *, temporary: bool) -> Iterator[None]:
    """Leave no process behind, whatever ends the block; a warden sees to it if this process is killed."""
    from kev.demo.processes import end_all

    command = [sys.executable, "-m", "kev.demo.warden", str(root), *(["--temporary"] if temporary else [])]
    warden = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end_all(root)
        warden.communicate()
        if temporary:
            files.remove_tree(root)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise Leave


def _leave_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _say(phase: str, text: str) -> None:
    print(json.dumps({"phase": phase, "text": text}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
