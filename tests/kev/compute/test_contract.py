"""The list of assumptions is complete in itself, holds on the emulator, and costs nobody anything unasked."""

from pathlib import Path

import pytest

from kev.compute import contract
from kev.compute.assumptions import ASSUMPTIONS
from kev.compute.contract import Assumption, Differs, Finding, Probe, Verdict, check, check_all, line_of, main
from kev.compute.contract_cleanup import remove
from kev.errors import KevError, Refused

from .conftest import OpenPlace


def test_every_assumption_says_what_and_how() -> None:
    names = [each.id for each in ASSUMPTIONS]
    assert len(names) == len(set(names))
    for each in ASSUMPTIONS:
        assert each.statement and each.how
        assert each.check is not None or each.how.startswith("Not check")


async def test_every_assumption_that_can_be_checked_holds_on_the_emulator() -> None:
    findings = await contract.run_on_emulator(say=lambda _line: None)
    assert [line_of(each) for each in findings if each.verdict is Verdict.DIFFERS] == []
    assert [each.assumption.id for each in findings] == [each.id for each in ASSUMPTIONS]
    assert sum(1 for each in findings if each.verdict is Verdict.HOLDS) >= 25


async def test_a_difference_is_reported_with_what_was_observed_and_nothing_stops_at_it() -> None:
    async def other(_probe: Probe) -> None:
        raise Differs("a \x1b[31mred herring\n")

    async def broken(_probe: Probe) -> None:
        raise KevError("no answer")

    probe = Probe(None, None, Path(), "")  # type: ignore[arg-type]
    one = await check(Assumption("a", "b", "c", other), probe)
    two = await check(Assumption("d", "e", "f", broken), probe)
    assert (one.verdict, one.observed) == (Verdict.DIFFERS, "a \\x1b[31mred herring\\n")
    assert (two.verdict, two.observed) == (Verdict.DIFFERS, "KevError: no answer")
    assert "observed: a " in line_of(one)
    assert one.to_json()["verdict"] == "differs"


def test_a_run_against_modal_says_what_it_creates_and_costs_and_does_nothing_unless_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("nothing may be asked")

    monkeypatch.setattr(contract, "check_all", forbidden)
    assert main(["--against-modal"]) == 2
    said = capsys.readouterr()
    assert "kev-contract" in said.out
    assert "cents" in said.out
    assert "--create-and-pay" in said.out
    assert said.err == "nothing was created\n"


def test_a_difference_makes_the_command_fail_and_is_in_the_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def found(say: object = print) -> list[Finding]:
        return [Finding(Assumption("a", "b", "c"), Verdict.DIFFERS, "seen")]

    monkeypatch.setattr(contract, "run_on_emulator", found)
    assert main(["--report", str(tmp_path / "report.json")]) == 1
    assert '"observed": "seen"' in (tmp_path / "report.json").read_text()


async def test_what_somebody_else_may_own_is_neither_used_nor_deleted(open_place: OpenPlace) -> None:
    place = await open_place()
    with pytest.raises(Refused, match="already"):
        await check_all(place.settings, say=lambda _line: None)
    assert await place.compute.app() is not None


async def test_what_cannot_be_removed_is_named_after_all_else_was(open_place: OpenPlace) -> None:
    place = await open_place()
    await place.run("write_files", {"files": {"a": "a"}})
    place.fault(rpc=("AppStop",), kind="refuse", message="not now", times=-1)
    with pytest.raises(KevError, match="modal app stop kev-contract") as raised:
        await remove(place.compute, place.settings)
    assert "volume" not in str(raised.value)
    assert await place.compute.listdir("kev-contract", "/") == []
