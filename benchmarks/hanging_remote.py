"""A session of 20 studies that report each second, and a provider that answers nothing: an emulator that hangs."""

import json
import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "kev" / "rounds"))

from checkouts import changed, good_spec, write_checkout, write_spec  # noqa: E402  found through the line above
from session_files import SessionFiles  # noqa: E402

from kev.ledger.book import Ledger  # noqa: E402
from kev.records.ledger import LedgerEvent  # noqa: E402
from kev.rounds.specs import load_spec  # noqa: E402
from kev.rounds.trial_orders import Provenance, trial_orders  # noqa: E402

PULLED = "study-000"
HANG = '[[fault]]\nrpc = ["any"]\nkind = "hang"\ntimes = -1\n'
START_S = 60.0


def twenty_studies(root: Path) -> SessionFiles:
    """The session, with a registered round whose first study the ledger has as started, so that it can be pulled."""
    session = SessionFiles(root, studies=20, trials=1).write()
    spec = write_spec(write_checkout(root), changed(good_spec(), "round", to=201))
    _, order = trial_orders(load_spec(spec, root).spec, root, Provenance())[0]
    order = order.model_copy(update={"name": PULLED, "remote": PULLED, "local": f"runs/{PULLED}"})
    unit, now = f"trial/{PULLED}/trial-0", time.time() - 60
    with Ledger(root / "runs").writing() as book:
        book.add(LedgerEvent(event="wanted", at=now, orders={unit: order}, who="benchmark"))
        book.add(LedgerEvent(event="intent", at=now, unit=unit, nonce="0" * 32))
        book.add(LedgerEvent(event="call", at=now, unit=unit, nonce="0" * 32, call="fc-0-trial-0"))
    return session


@contextmanager
def hanging_provider(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which an emulator is met that takes every request and answers none."""
    folder.mkdir()
    (folder / "faults.toml").write_text(HANG)
    command = [sys.executable, "-m", "kev.emulator", "up", "--root", str(folder / "emulator"), "--attended",
               "--faults", str(folder / "faults.toml")]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=env)
    try:
        yield _environment(process)
    finally:
        process.communicate()  # its input closes, which ends it


def _environment(process: "subprocess.Popen[bytes]") -> dict[str, str]:
    assert process.stdout is not None
    said, until = b"", time.monotonic() + START_S
    while not said.endswith(b"Ctrl-C\n"):
        ready = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]
        piece = os.read(process.stdout.fileno(), 65_536) if ready else b""
        if not piece:
            raise SystemExit(f"the emulator did not start: {said.decode(errors='replace')[-300:]}")
        said += piece
    lines = [line.removeprefix("export ") for line in said.decode().splitlines() if line.startswith("export ")]
    return {name: shlex.split(value)[0] for name, _, value in (line.partition("=") for line in lines)}


def pulls_begun(root: Path) -> int:
    """How many pulls were put on record, and have no result."""
    found = [path for path in (root / "runs" / ".actions").glob("pull-*.json") if path.name.count(".") == 1]
    return sum(not path.with_suffix(".result.json").exists() and bool(json.loads(path.read_text())) for path in found)
