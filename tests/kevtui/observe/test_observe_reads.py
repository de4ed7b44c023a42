"""The matrix of reads, from launched to landed, and the read-out beside what was registered."""

from typing import Any

import pytest
from checkout_files import SPEC

from kevtui.observe.snapshot import ReadState, TrialState, Verdict


@pytest.mark.parametrize(
    ("status", "later", "state"),
    [("running", 60, ReadState.IN_FLIGHT), ("running", 6000, ReadState.OVERDUE), ("failed", 60, ReadState.FAILED)],
)
def test_a_read_that_has_a_record_of_its_own_is_known_before_it_lands(
    checkout: Any, watching: Any, clock: Any, status: str, later: float, state: ReadState
) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    directory = next(cell.directory for cell in watching("r9").observe().reads.cells if cell.state is ReadState.ABSENT)
    checkout.write(f"{directory}.read.json", {
        "name": directory.removeprefix("runs/"), "kind": "benchmark", "run": "/runs/r9-a/00-trial-0/checkpoint",
        "suites": ["evals/hard"], "gpu": "H200", "timeout": 600, "bound_usd": 1, "at": clock.now().timestamp(),
        "call": "fc-1", "status": status,
    })  # fmt: skip
    clock.pass_(later)
    [cell] = [cell for cell in watching("r9").observe().reads.cells if cell.directory == directory]
    assert cell.state is state


def test_the_matrix_shows_what_landed_is_out_failed_or_was_never_launched(
    checkout: Any, watching: Any, clock: Any
) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    checkout.write("runs/r9-4b-a-hard/rows.json", [])
    jobs = "/r9-a/00-trial-0/checkpoint@evals/documents@r9-4b-a-docs,o/m@sha@evals/w@r9-4b-a-wide"
    checkout.write("runs/r9-reads-4b-a.json", {"launched_at": clock.now().timestamp() - 60,
                                               "commands": [["modal", "run", "--jobs", jobs]]})  # fmt: skip
    checkout.write("runs/r9-reads-4b-a-0.log", b"r9-4b-a-wide: FAILED RemoteError: gateway [503]\n")
    observer = watching("r9")
    snapshot = observer.observe()

    def states() -> dict[str, ReadState]:
        return {tag: snapshot.reads.cell("4b-a", tag).state for tag in ("hard", "docs", "wide")}

    assert states() == {"hard": ReadState.LANDED, "docs": ReadState.IN_FLIGHT, "wide": ReadState.FAILED}
    assert snapshot.reads.cell("4b-b", "hard").state is ReadState.ABSENT
    assert snapshot.reads.cell("4b", "docs") is None, "the parent has no such read"
    assert snapshot.money.committed is not None and snapshot.money.committed > 0, "a read in flight may cost"
    for _ in range(600):
        clock.pass_(20)
        snapshot = observer.observe()
        if snapshot.reads.cell("4b-a", "docs").state is ReadState.OVERDUE:
            break
    assert states()["docs"] is ReadState.OVERDUE


def test_a_read_out_stands_beside_what_was_registered(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    metric = {"candidate": 0.8, "parent": 0.7, "delta": 0.1, "ci95": [0.05, 0.15]}
    checkout.write("runs/r9-readout/round9.json", {"round": 9, "registered": "x", "drop_ids": [], "arms": {"4b-a": {
        "trial": "runs/r9-a/00-trial-0", "parent": "runs/p/00-trial-0", "temperature": 1.5, "panels": {"hard": {
            "n": 9, "acc": metric}}, "criteria": {"1_gain": True, "3_ece": None}, "missing": [], "complete": True,
        "passed": False}}, "ranking": {"4b": []}, "candidates": {"4b": None}})  # fmt: skip
    snapshot = watching("r9").observe()
    assert snapshot.readout is not None
    first, second = snapshot.readout.arms
    gain, ece = first.criteria
    assert (gain.kind, gain.verdict, gain.value, gain.threshold) == ("primary", Verdict.PASS, 0.05, 0)
    assert (ece.kind, ece.verdict, ece.value, ece.right) == (
        "calibration",
        Verdict.MISSING,
        None,
        "hard.ece.parent + 0.01",
    )
    assert (second.name, second.note, second.passed) == ("4b-b", "not read yet", None)
    assert [criterion.verdict for criterion in second.criteria] == [Verdict.MISSING, Verdict.MISSING]
    assert snapshot.readout.candidates == (("4b", None),)
    assert snapshot.studies[0].state is TrialState.DONE


def test_empty_rows_are_named_and_are_no_read_that_has_landed(checkout: Any, watching: Any) -> None:
    checkout.write("experiments/rounds/r9.json", SPEC)
    checkout.write("runs/r9-4b-a-hard/rows.json", b"")
    observer = watching("r9")
    snapshot = observer.observe()
    assert snapshot.reads.cell("4b-a", "hard").state is not ReadState.LANDED
    assert [(finding.path, finding.reason) for finding in snapshot.findings] == [
        ("runs/r9-4b-a-hard/rows.json", "empty")]  # fmt: skip
    checkout.write("runs/r9-4b-a-hard/rows.json", [])
    snapshot = observer.observe()
    assert (snapshot.reads.cell("4b-a", "hard").state, snapshot.findings) == (ReadState.LANDED, ())
