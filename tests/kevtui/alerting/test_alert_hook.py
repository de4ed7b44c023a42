"""The hook is a real program: it gets what is told, cannot hang anything, prints nowhere, and fails in one line."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kevtui.alerting.hook import MOST_AT_ONCE, MOST_OUTPUT, Hook, _converse

CONTEXT = {"at": "2027-03-28T00:30:00Z", "title": "r41", "session": "night", "round": 41, "root": "/x",
           "sample": False, "simulated": True}  # fmt: skip
PATIENCE_S = 60.0


def one(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": f"slowed:s/trial-{number}", "kind": "slowed", "severity": "warning", "subject": f"s/trial-{number}",
            "text": "slowed", "condition": "", "repeats": 0, **more}  # fmt: skip


def hook(code: str, tmp_path: Path, said: list[str], *, timeout_s: float = 30.0) -> Hook:
    return Hook((sys.executable, "-c", code, str(tmp_path)), timeout_s=timeout_s, complain=said.append)


WRITE = """
import json, os, sys
from pathlib import Path
told = {"input": json.load(sys.stdin), "environment": {k: v for k, v in os.environ.items() if "KEVTUI_ALERT" in k},
        "group": os.getpgid(0), "parent": os.getppid()}
here = Path(sys.argv[1])
(here / f"told-{len(list(here.glob('told-*')))}").write_text(json.dumps(told))
"""


def read(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(tmp_path.glob("told-*"))]


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def test_it_gets_the_alerts_as_json_and_the_first_as_variables_in_a_group_of_its_own(tmp_path: Path) -> None:
    said: list[str] = []
    made = hook(WRITE, tmp_path, said)
    made.tell([one(1, text="a\x1b[2J\x00b"), one(2)], CONTEXT)
    assert made.wait(PATIENCE_S)
    (told,) = read(tmp_path)
    assert told["input"] | {"alerts": []} == {"schema_version": 1, "alerts": [], "more": 0, **CONTEXT}
    assert [alert["id"] for alert in told["input"]["alerts"]] == ["slowed:s/trial-1", "slowed:s/trial-2"]
    assert told["input"]["alerts"][0]["text"] == "a\x1b[2J\x00b", "JSON loses nothing"
    variables = told["environment"]
    assert variables["KEVTUI_ALERT_TEXT"] == "a\\x1b[2J\\x00b"
    assert (variables["KEVTUI_ALERT_COUNT"], variables["KEVTUI_ALERT_SESSION"]) == ("2", "night")
    assert variables["KEVTUI_ALERT_ID"] == "slowed:s/trial-1"
    assert told["group"] != os.getpgid(0) and told["parent"] == os.getpid()
    assert said == []


def test_what_is_told_while_it_runs_is_told_together_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "wait").touch()
    code = "import time\nfrom pathlib import Path\nimport sys\n"
    code += "while (Path(sys.argv[1]) / 'wait').exists(): time.sleep(0.01)\n" + WRITE
    made = hook(code, tmp_path, [])
    made.tell([one(0)], CONTEXT)
    until(lambda: made._process, "the first run")
    for number in range(1, MOST_AT_ONCE + 11):
        made.tell([one(number)], CONTEXT)
    (tmp_path / "wait").unlink()
    assert made.wait(PATIENCE_S)
    first, second = read(tmp_path)
    assert len(first["input"]["alerts"]) == 1
    assert (len(second["input"]["alerts"]), second["input"]["more"]) == (MOST_AT_ONCE, 10)


HANG = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
(Path(sys.argv[1]) / f"pid-{os.getpid()}").touch()
print("hanging", flush=True)
while True: time.sleep(3600)
"""


def gone(path: Path) -> bool:
    try:
        os.kill(int(path.name.removeprefix("pid-")), 0)
    except ProcessLookupError:
        return True
    return "Z" in Path(f"/proc/{path.name.removeprefix('pid-')}/stat").read_text().rpartition(")")[2].split()[0]


def test_one_that_hangs_and_ignores_being_asked_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    said: list[str] = []
    made = hook(HANG, tmp_path, said, timeout_s=2.0)
    made.tell([one()], CONTEXT)
    assert made.wait(PATIENCE_S)
    assert said == [f"the alert hook {sys.executable} took longer than 2 s and was ended"]
    started = list(tmp_path.glob("pid-*"))
    assert len(started) == 2
    until(lambda: all(map(gone, started)), "both processes to be gone")


def test_a_failing_one_is_said_once_until_it_works_again(tmp_path: Path) -> None:
    said: list[str] = []
    code = "import sys; from pathlib import Path\nprint('no \\x1b[31mnetwork', file=sys.stderr)\n"
    code += "sys.exit(7 if (Path(sys.argv[1]) / 'broken').exists() else 0)"
    made = hook(code, tmp_path, said)
    for broken in (True, True, True, False, True):
        (tmp_path / "broken").touch() if broken else (tmp_path / "broken").unlink()
        made.tell([one()], CONTEXT)
        assert made.wait(PATIENCE_S)
    assert said == [f"the alert hook {sys.executable} ended with status 7: no \\x1b[31mnetwork"] * 2


def test_one_that_is_not_there_or_reads_nothing_is_no_crash(tmp_path: Path) -> None:
    said: list[str] = []
    made = Hook((str(tmp_path / "nothing"),), timeout_s=5.0, complain=said.append)
    made.tell([one()], CONTEXT)
    assert made.wait(PATIENCE_S)
    assert said == [f"the alert hook {tmp_path / 'nothing'} cannot be started: No such file or directory"]
    deaf = hook("import os; os.close(0)", tmp_path, said)
    deaf.tell([one(number, text="x" * 20_000) for number in range(40)], CONTEXT)
    assert deaf.wait(PATIENCE_S)
    assert len(said) == 1


def test_an_endless_output_is_read_and_only_its_end_kept(tmp_path: Path) -> None:
    import subprocess

    code = "import sys\nfor number in range(40000): print('y' * 100)\nprint('the end')"
    process = subprocess.Popen((sys.executable, "-c", code), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               start_new_session=True)  # fmt: skip
    output, timely = _converse(process, b"{}\n", PATIENCE_S)
    assert timely and len(output) <= MOST_OUTPUT and output.endswith(b"the end\n")


def test_a_child_that_keeps_the_output_open_is_not_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    code = "import os, sys, time\nfrom pathlib import Path\n"
    code += "if os.fork() == 0:\n"
    code += "    (Path(sys.argv[1]) / f'pid-{os.getpid()}').touch()\n    time.sleep(600)\n    os._exit(0)\n"
    made = hook(code, tmp_path, said, timeout_s=PATIENCE_S)
    made.tell([one()], CONTEXT)
    assert made.wait(PATIENCE_S / 2) and said == []
    until(lambda: list(tmp_path.glob("pid-*")), "the child")
    for path in tmp_path.glob("pid-*"):
        os.kill(int(path.name.removeprefix("pid-")), signal.SIGKILL)


def test_closing_ends_a_run_and_says_nothing_of_it(tmp_path: Path) -> None:
    said: list[str] = []
    code = "import os, sys, time\nfrom pathlib import Path\n"
    code += "(Path(sys.argv[1]) / f'pid-{os.getpid()}').touch()\ntime.sleep(600)"
    made = hook(code, tmp_path, said, timeout_s=300.0)
    made.tell([one()], CONTEXT)
    until(lambda: list(tmp_path.glob("pid-*")), "its start")
    made.tell([one()], CONTEXT)
    made.close()
    assert made.wait(PATIENCE_S)
    assert said == [] and len(list(tmp_path.glob("pid-*"))) == 1
    made.tell([one()], CONTEXT)
    assert made._thread is None
