"""A registered round by `python -m kev.rounds` against the emulator: launched, watched, read."""

import json

from .conftest import Night
from .registered_round import rounds, write_round


def test_a_round_is_launched_once_watched_and_read(own_night: Night) -> None:
    night = own_night
    spec = write_round(night, "r61-a")
    (night.root / "runs" / "dusk-state.json").write_text(json.dumps(
        {"session": "dusk", "simulated": True, "authorization_usd": 100, "baseline_usd": 0}))  # fmt: skip
    launched = rounds(night, "launch", spec, "--stagger", "0")
    assert launched.returncode == 0, launched.stdout + launched.stderr
    again = rounds(night, "launch", spec, "--json")
    assert json.loads(again.stdout) == {"started": {}, "already": ["trial/r61-a/trial-0"], "unknown": {}}
    watched = rounds(night, "watch", spec, "--interval", "1", "--stagger", "0", "--passes", "90")
    status = json.loads(rounds(night, "status", spec, "--json").stdout)
    states = {unit["unit"]: unit["state"] for unit in status["units"]}
    expected = {"trial/r61-a/trial-0": "done", "read/runs/r61-1b-a-far": "done"}
    assert states == expected, f"{states}\n{watched.stdout}\n{watched.stderr}"
    assert (night.root / "runs" / "r61-1b-a-far" / "rows.json").exists()
    assert (night.root / "runs" / "r61-a" / "00-trial-0" / "result.json").exists()
