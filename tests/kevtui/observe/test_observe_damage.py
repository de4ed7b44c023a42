"""A damaged file is named, hides nothing else and ends no pass."""

from decimal import Decimal
from typing import Any

import pytest
from checkout_files import step
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kevtui.observe.lister import SETTLED_EVERY
from kevtui.observe.observer import Observer
from kevtui.observe.target import resolve

BAD = [b"", b"null", b"[]", b"{", b"\xff\xfe{}", b'{"a": NaN}', b"[" * 5000, b'{"name": "x\xe9"}']


@pytest.mark.parametrize("damage", BAD)
@pytest.mark.parametrize("name", [
    "runs/r9-bad.spawn.json", "runs/r9-a.watch.json", "runs/r9-a/00-trial-0/result.json", "runs/dusk-state.json",
    "runs/r9-a/00-trial-0/checkpoint/resume/latest.json",
    "volumes/kev-leases/r9-a/00-trial-0/attempt.json"])  # fmt: skip
def test_one_bad_file_is_named_and_everything_else_stays(checkout: Any, watching: Any, name: str,
                                                         damage: bytes) -> None:  # fmt: skip
    checkout.spawn("r9-a")
    checkout.log("r9-a", step(10))
    checkout.write(name, damage)
    snapshot = watching().observe()
    shown = next(study for study in snapshot.studies if study.name == "r9-a")
    assert (shown.bound, shown.trials[0].step) == (Decimal("12.5"), 10)
    assert [finding.path for finding in snapshot.findings] == [name]
    hides_money = name.endswith((".spawn.json", "-state.json"))
    assert snapshot.money.committed_complete is not hides_money


def test_an_empty_state_file_is_damage_and_no_fresh_session(checkout: Any, watching: Any) -> None:
    checkout.write("runs/dusk-state.json", b"")
    snapshot = watching("dusk").observe()
    assert snapshot.money.headroom is None and not snapshot.money.committed_complete
    assert [(finding.path, finding.reason) for finding in snapshot.findings] == [("runs/dusk-state.json", "empty")]


def test_the_last_good_value_stays_in_use_with_its_age(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    observer = watching()
    observer.observe()
    clock.pass_(20)
    checkout.write("runs/r9-a.spawn.json", b'{"name": "r9-')
    snapshot = observer.observe()
    assert snapshot.studies[0].bound == Decimal("12.5")
    assert snapshot.findings[0].last_good_age_s == 20
    assert not snapshot.money.committed_complete
    checkout.spawn("r9-a", bound_usd=14)
    snapshot = observer.observe()
    assert (snapshot.studies[0].bound, snapshot.findings) == (Decimal(14), ())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_a_file_torn_at_any_byte_never_ends_a_pass(checkout: Any, data: st.DataObject) -> None:
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "done"})
    checkout.state("dusk")
    checkout.lease("r9-a", heartbeat=checkout.clock.now().timestamp())
    names = ["runs/r9-a.spawn.json", "runs/r9-a.watch.json", "runs/dusk-state.json",
             "volumes/kev-leases/r9-a/00-trial-0/attempt.json"]  # fmt: skip
    name = data.draw(st.sampled_from(names))
    path = checkout.root / name
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:cut] + data.draw(st.sampled_from([b"", b"\0" * 8, b"\xff", b'"'])))
    snapshot = Observer(resolve(".", root=checkout.root, cwd=checkout.root), clock=checkout.clock).observe()
    assert [finding.path for finding in snapshot.findings] == [name]


def test_text_from_files_is_carried_whole(checkout: Any, watching: Any) -> None:
    error = "a\x1b[2J[/b] [@click=app.quit]\\ \ud83d \u202e\r\n"
    checkout.spawn("r9-a")
    checkout.watch("r9-a", {"status": "failed", "error": error})
    assert watching().observe().trials[0].error == error


def links(checkout: Any) -> dict[str, Any]:
    """Ways in which a name can be there and no file: each takes the path to make."""
    return {
        "loop": lambda path: path.symlink_to(path.name),
        "dangling": lambda path: path.symlink_to(checkout.root / "unmounted" / path.name),
        "below a file": lambda path: path.symlink_to(checkout.root / "runs" / "r9-a.spawn.json" / "x"),
        "directory": lambda path: path.mkdir(),
    }


@pytest.mark.parametrize("kind", ["loop", "dangling", "below a file", "directory"])
@pytest.mark.parametrize("name", [
    "runs/r9-bad.spawn.json", "runs/r9-a.watch.json", "runs/r9-a/00-trial-0/result.json",
    "runs/r9-a/00-trial-0/train.log", "runs/r9-a/00-trial-0/checkpoint/resume/latest.json",
    "volumes/kev-leases/r9-a/00-trial-0/attempt.json"])  # fmt: skip
def test_a_name_that_leads_to_no_file_is_named_and_hides_nothing_beside_it(checkout: Any, watching: Any, name: str,
                                                                           kind: str) -> None:  # fmt: skip
    checkout.spawn("r9-a")
    checkout.spawn("r9-b")
    checkout.log("r9-b", step(10))
    path = checkout.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    links(checkout)[kind](path)
    observer = watching()
    snapshot = observer.observe()
    assert [finding.path for finding in snapshot.findings] == [name]
    assert next(trial.step for trial in snapshot.trials if trial.study == "r9-b") == 10
    assert snapshot.money.committed_complete is not name.endswith(".spawn.json")
    path.rmdir() if kind == "directory" else path.unlink()
    for _ in range(SETTLED_EVERY):
        snapshot = observer.observe()
    assert snapshot.findings == ()


def test_a_link_whose_file_comes_back_is_read_without_a_restart(checkout: Any, watching: Any, clock: Any) -> None:
    checkout.spawn("r9-a")
    real = checkout.write("scratch/state.json", b"{")
    moved = real.with_suffix(".away")
    (checkout.runs / "r9-a.watch.json").symlink_to(real)
    real.rename(moved)
    observer = watching()
    assert "a link to nothing" in observer.observe().findings[0].reason
    moved.rename(real)
    checkout.write("scratch/state.json", {"calls": {"trial-0": {"status": "done"}}})
    clock.pass_(2)
    snapshot = observer.observe()
    assert (snapshot.findings, snapshot.trials[0].state.value) == ((), "done")


def test_a_study_folder_on_a_volume_that_is_not_mounted_is_named_until_it_is(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a")
    (checkout.runs / "r9-a").symlink_to(checkout.root / "scratch")
    observer = watching()
    finding = observer.observe().findings[0]
    assert finding.path == "runs/r9-a" and "a link to nothing" in finding.reason
    checkout.write("scratch/00-trial-0/train.log", f"{step(20)}\n".encode())
    snapshot = observer.observe()
    assert (snapshot.findings, snapshot.trials[0].step) == ((), 20)
