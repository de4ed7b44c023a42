"""`python -m kevtui.actions.runner DIRECTORY ID LOCK`: does one accepted action, with nobody there.

A process of its own session: the end of the dashboard, of its terminal or of its machine's login changes nothing for
it. LOCK is the descriptor of the action's lock, held by whoever has it open; the engine's command inherits it too, so
that the action counts as under way until both have ended.
"""

import os
import subprocess
import sys
from pathlib import Path

from kev import files
from kev.clock import SystemClock
from kev.errors import KevError
from kev.records.base import read_record, write_record
from kev.records.request import ActionRequest, ActionResult, ActionRun
from kevtui.actions.accept import tell
from kevtui.actions.requests import last_words, summary


def main(arguments: list[str]) -> int:
    directory, name, lock = Path(arguments[0]), arguments[1], int(arguments[2])
    clock = SystemClock()
    request = read_record(directory / f"{name}.json", ActionRequest)
    here = ActionRun(process=os.getpid(), host=os.uname().nodename, at=clock.now().timestamp())
    write_record(directory / f"{name}.run.json", here)
    code = carry_out(request, directory, lock)
    text = summary(directory.parent, name) if code == 0 else last_words(directory.parent, name)
    result = ActionResult(code=code, at=clock.now().timestamp(), text=text)
    write_record(directory / f"{name}.result.json", result)
    how = "done" if code == 0 else f"failed with exit status {code}"
    tell(request, clock, how, failed=code != 0, text=text if code else "")
    return 0


def carry_out(request: ActionRequest, directory: Path, lock: int) -> int:
    """Run the engine's command to its end. Returns its exit status; 127 where it could not be started."""
    with (
        files.open_log(directory / f"{request.id}.out") as output,
        files.open_log(directory / f"{request.id}.log") as log,
    ):
        try:
            process = subprocess.Popen(
                [sys.executable, *request.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                cwd=request.root,
                env={**os.environ, **request.environment, "PYTHONUNBUFFERED": "1"},
                pass_fds=(lock,),
            )
        except OSError as error:
            print(f"cannot be started: {error.strerror or error}", file=sys.stderr, flush=True)
            return 127
        return process.wait()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KevError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
