"""A pass makes anew what moved since the one before, and nothing else."""

from typing import Any

from checkout_files import step

from kevtui.observe.snapshot import Section


def test_a_pass_over_files_that_did_not_move_changes_nothing(checkout: Any, watching: Any) -> None:
    checkout.spawn("r9-a", labels=3)
    checkout.watch("r9-a", {}, {}, {})
    checkout.log("r9-a", step(10))
    observer = watching()
    first = observer.observe()
    second = observer.observe()
    assert first.changed == {section.value for section in Section}
    assert second.changed == frozenset()
    assert second.studies is first.studies and second.findings is first.findings


def test_only_what_moved_is_made_anew(checkout: Any, watching: Any, clock: Any) -> None:
    for name in ("r9-a", "r9-b"):
        checkout.spawn(name, labels=2)
        checkout.watch(name, {}, {})
        checkout.log(name, step(10))
    observer = watching()
    first = observer.observe()
    clock.pass_(1)
    checkout.log("r9-b", step(20))
    second = observer.observe()
    assert second.changed == {"studies"}
    assert second.studies[0] is first.studies[0]
    assert second.studies[1].trials[1] is first.studies[1].trials[1]
    assert second.studies[1].trials[0].step == 20


def test_studies_and_files_that_appear_later_are_seen(checkout: Any, watching: Any) -> None:
    observer = watching()
    assert observer.observe().studies == ()
    checkout.spawn("r9-a")
    assert [study.name for study in observer.observe().studies] == ["r9-a"]
    checkout.log("r9-a", step(10))
    assert observer.observe().trials[0].step == 10
    (checkout.runs / "r9-a.spawn.json").unlink()
    assert observer.observe().trials[0].call is None


def test_waiting_ends_in_real_time_under_any_clock(checkout: Any, watching: Any) -> None:
    observer = watching()
    observer.observe()
    assert observer.wait(0.05) is False
