"""The edge of an authorization by the real commands against the emulator: one cent decides, and so does one reading."""

import json
from datetime import UTC, datetime, timedelta

from kev.budget import MAX_READING_AGE, compute_bound, dollars
from kev.emulator.plan import ENDLESS, Fault

from .conftest import Night
from .registered_round import GPU, TIMEOUT, command, rounds, write_round

STUDY = "r61-edge"
BOUND = compute_bound(GPU, TIMEOUT, 1)
"""$1.0442; asking the deployed app for its sources counts for less than a cent besides."""

RESERVE = "0.10"
BELOW, ABOVE = "1.14", "1.15"
NO_METER = Fault(name="meter", rpc=("billing",), kind="unavailable", times=ENDLESS)


def open_session(night: Night, name: str, authorization: str) -> None:
    opened = command(night, "kev.session", "open", name, "--authorization", authorization, "--reserve", RESERVE)
    assert opened.returncode == 0, opened.stderr


def age_the_readings(night: Night, session: str, seconds: float) -> None:
    path = night.root / "runs" / f"{session}-state.json"
    state = json.loads(path.read_text())
    for number, reading in enumerate(reversed(state["readings"])):
        at = datetime.now(UTC) - timedelta(seconds=seconds + number)
        reading["at"] = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    path.write_text(json.dumps(state))


def test_a_cent_below_what_a_study_needs_is_refused_with_the_whole_sum_and_a_cent_above_is_launched(
    own_night: Night,
) -> None:
    night = own_night
    spec = write_round(night, STUDY)
    open_session(night, "below", BELOW)
    refused = rounds(night, "launch", spec, "--session", "below")
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"round 61: bound {dollars(BOUND)} is not below the headroom $1.0")
    assert "authorization $1.14 - reserve $0.10 - spent $0.00" in line
    assert "- committed $0.00" in line and "ended, perhaps not metered yet $0.00" in line
    assert STUDY not in refused.stdout
    assert not (night.root / "runs" / f"{STUDY}.spawn.json").exists()

    open_session(night, "above", ABOVE)
    age_the_readings(night, "above", MAX_READING_AGE + 1)
    night.emulator.add(NO_METER)
    old = rounds(night, "launch", spec, "--session", "above")
    assert (old.returncode, "s old, and 900 s are allowed" in old.stderr) == (1, True), old.stderr
    assert not (night.root / "runs" / f"{STUDY}.spawn.json").exists()
    night.emulator.clear()
    assert command(night, "kev.session", "refresh", "--session", "above").returncode == 0
    night.emulator.add(NO_METER)  # so that the launch rests on the reading that was taken, and on no other
    try:
        launched = rounds(night, "launch", spec, "--session", "above")
    finally:
        night.emulator.clear()
    assert launched.returncode == 0, launched.stderr
    assert f"round 61: simulated bound {dollars(BOUND)}\n  authorization $1.15 - reserve $0.10\n" in launched.stdout
    assert "1 started, 0 were on record, 0 not known" in launched.stdout
    assert list(night.spawn_record(STUDY)["calls"]) == ["trial-0"]
