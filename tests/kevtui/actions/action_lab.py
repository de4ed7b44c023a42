"""A registered round in a checkout, a session with money, and an engine that only counts how often it is called.

The engine's commands run with the checkout as their directory, so a package `kev` in it stands in for the real one.
Everything else is the product's own.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from checkouts import changed, git, good_spec, write_checkout, write_spec

from kev import files
from kev.clock import SystemClock
from kev.control import set_control
from kev.ledger.book import Ledger
from kev.records.ledger import LedgerEvent, Order
from kev.records.session import SessionState, SpendReading
from kev.rounds.specs import load_spec
from kev.rounds.trial_orders import Provenance, trial_orders
from kev.session import create_state
from kevtui.actions.proposal import Proposal, Wish
from kevtui.actions.propose import propose
from kevtui.cli import main

PLAN = "# Plan\n\n## Round 201\n\nDoes it help?\n"
FULL, DELTA = "trial/r201-full/trial-0", "trial/r201-delta/trial-0"
REPOSITORY = Path(__file__).parents[3]
PATIENCE_S = 60.0

STAND_IN = """
import json, os, sys, time
from pathlib import Path
here = Path(__file__).resolve().parents[2]
with (here / "calls.log").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
until = here / "hang"
while until.exists():
    time.sleep(0.02)
trouble = here / "trouble"
if trouble.exists():
    print(trouble.read_bytes().decode(), file=sys.stderr)
    sys.exit(1)
print("3/4 files", file=sys.stderr)
print("{}")
"""


def prepare(root: Path, spec: dict[str, Any] | None = None) -> Path:
    """The checkout, with its round registered; made once, since a commit takes long."""
    spec_path = write_checkout(root)
    (root / "PLAN.md").write_text(PLAN)
    write_spec(spec_path, changed(good_spec(), "round", to=201) if spec is None else spec)
    for package in ("kev", "kev/rounds", "kev/session", "modal"):
        (root / package).mkdir()
        (root / package / "__init__.py").write_text("")
        depth = package.count("/") + 1
        (root / package / "__main__.py").write_text(STAND_IN.replace("parents[2]", f"parents[{depth}]"))
    (root / "modal_app.py").write_text("")
    (root / ".gitignore").write_text("runs/\ncalls.log\n")
    git(root, "init", "-q")
    git(root, "add", "-A", ".")
    git(root, "commit", "-qm", "Register round 201")
    return root


class ActionLab:
    """One copy of the prepared checkout."""

    def __init__(self, prepared: Path, root: Path, authorization: str = "200") -> None:
        shutil.copytree(prepared, root, symlinks=True)
        self.root = root
        self.runs = root / "runs"
        self.clock = SystemClock()
        self.open_session(authorization)

    def open_session(self, authorization: str = "200", age_s: float = 1.0, name: str = "night") -> Path:
        at = (datetime.now(UTC) - timedelta(seconds=age_s)).isoformat()
        path = self.runs / f"{name}-state.json"
        path.unlink(missing_ok=True)
        values = {"session": name, "simulated": True, "authorization_usd": int(authorization), "baseline_usd": 500,
                  "readings": [SpendReading.model_validate({"at": at, "metered_usd": 510})]}  # fmt: skip
        create_state(path, SessionState.model_validate(values))
        return path

    @property
    def state(self) -> Path:
        return self.runs / "night-state.json"

    def propose(self, verb: str, target: str | None = None, **options: Any) -> Proposal:
        return propose(Wish(verb, target, **options), self.root, self.clock)

    def orders(self) -> dict[str, Order]:
        loaded = load_spec(self.root / "experiments" / "rounds" / "r201.json", self.root)
        return dict(trial_orders(loaded.spec, self.root, Provenance()))

    def put_in_ledger(self, *events: LedgerEvent) -> None:
        with Ledger(self.runs).writing() as book:
            for event in events:
                book.add(event)

    def start(self, unit: str, *, outcome: str | None = None) -> None:
        """Put a trial on record as started, and as ended with `outcome` if one is given."""
        now = time.time() - 60
        events = [
            LedgerEvent(event="wanted", at=now, orders={unit: self.orders()[unit]}, who="test"),
            LedgerEvent(event="intent", at=now, unit=unit, nonce=unit),
            LedgerEvent(event="call", at=now, unit=unit, nonce=unit, call="fc-1"),
        ]
        if outcome is not None:
            events.append(LedgerEvent(event="ended", at=now + 1, unit=unit, nonce=unit, outcome=outcome))
        self.put_in_ledger(*events)

    def pause(self) -> None:
        set_control(self.state, "soft", who="test", at=time.time(), reason="a walk")

    def choose(self, arm: str) -> None:
        """A read-out whose candidate is `arm`, and the choice committed."""
        size = arm.partition("-")[0]
        readout = {"round": 201, "arms": {arm: {"complete": True, "passed": True}}, "candidates": {size: arm}}
        files.write_atomic(self.runs / "r201-readout" / "round201.json", files.dump_json(readout))
        (self.root / "PLAN.md").write_text(f"{PLAN}\n- Candidate ({size}): `{arm}`\n")
        git(self.root, "commit", "-qam", f"Choose {arm}")

    def land(self, *reads: str) -> None:
        """Rows of reads, with nothing in them."""
        for read in reads:
            files.write_atomic(self.runs / read / "rows.json", b"[]\n")

    # ------------------------------------------------------------------------------------------------ without a screen

    def act(self, *arguments: str, env: dict[str, str] | None = None, wait: bool = True) -> "Acted":
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "XDG_CONFIG_HOME": str(self.root / "config")}
        environment |= env or {}
        command = [sys.executable, "-m", "kevtui", "act", *arguments, "--root", str(self.root), "--json"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=REPOSITORY
        )
        acted = Acted(process)
        return acted.end() if wait else acted

    def ask(self, *arguments: str, env: dict[str, str] | None = None) -> "Asked":
        """`act` in this process, which takes a tenth of the time: for what starts nothing."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            for name, value in ({"XDG_CONFIG_HOME": str(self.root / "config")} | (env or {})).items():
                patch.setenv(name, value)
            code = main(["act", *arguments, "--root", str(self.root), "--json"])
        out.seek(0)
        return Asked(code, json.load(out))

    @property
    def calls(self) -> list[list[str]]:
        """What the engine was asked for, in order."""
        path = self.root / "calls.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def called(self, command: str) -> int:
        return sum(call[:1] == [command] for call in self.calls)

    @property
    def events(self) -> list[dict[str, Any]]:
        path = self.runs / "night-events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Asked(NamedTuple):
    """The exit status and the answer of `act`."""

    code: int
    report: dict[str, Any]


class Acted:
    """One run of `kevtui act`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.code = -1
        self.report: dict[str, Any] = {}

    def end(self) -> "Acted":
        out, err = self.process.communicate(timeout=PATIENCE_S)
        self.code = self.process.returncode
        assert b"Traceback" not in err, err.decode()
        self.report = json.loads(out)
        return self

    @property
    def text(self) -> str:
        return json.dumps(self.report)


def wait_until(condition: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.02)
