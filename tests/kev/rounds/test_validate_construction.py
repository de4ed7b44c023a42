"""What the watcher is going to have mixed must be what was meant, and what the arms are."""

from pathlib import Path

import pytest
from checkouts import Check, changed, good_spec, without

from kev.document import format_path
from kev.records.base import parse_record
from kev.records.spec import RoundSpec
from kev.rounds.blend_orders import registered_orders
from kev.rounds.trial_orders import Provenance

SPEC = good_spec()
BLEND = ("construction", "blend")


@pytest.mark.parametrize(
    ("key", "value", "code", "where"),
    [
        ("sft", "lamps/full", "bad-blend", "construction.blend.sft"),
        ("toward", "lamps/unpinned", "bad-blend", "construction.blend.toward"),
        ("alphas", "0.5,1", "bad-blend", "construction.blend.alphas"),
        ("alphas", "0.5,0.50", "bad-blend", "construction.blend.alphas"),
        ("prefix", "../up", "bad-blend", "construction.blend.prefix"),
        ("timeout", 0, "bad-blend", "construction.blend.timeout"),
        ("study", "r201-full", "name-taken", "construction.blend.study"),
        ("study", "R201-Full", "name-taken", "construction.blend.study"),
        ("timeout", 10**9, "bad-blend", "construction.blend.timeout"),
        ("alphas", "0.4", "unknown-blend", "arms.2b-blend.checkpoint"),
    ],
)
def test_a_blend_that_cannot_be_meant_is_a_problem(
    check: Check, key: str, value: object, code: str, where: str
) -> None:
    found = [(each.code, format_path(each.where)) for each in check(changed(SPEC, *BLEND, key, to=value)).findings]
    assert (code, where) in found


def test_without_another_checkpoint_the_pinned_base_is_needed(check: Check) -> None:
    alone = without(SPEC, *BLEND, "toward")
    assert check(alone).ok
    for broken in (without(alone, *BLEND, "base"), changed(alone, *BLEND, "revision", to="main")):
        assert "bad-blend" in {finding.code for finding in check(broken).findings}


def test_the_base_is_not_needed_where_two_checkpoints_are_mixed(check: Check) -> None:
    assert check(without(without(SPEC, *BLEND, "base"), *BLEND, "revision")).ok


def test_a_blend_that_is_no_arm_is_a_warning_and_is_not_made(check: Check) -> None:
    spec = changed(SPEC, "arms", "2b-blend", "checkpoint", to="/runs/elsewhere/2b/checkpoint")
    result = check(spec)
    assert result.ok and "unused-blend" in {finding.code for finding in result.findings}
    assert registered_orders(parse_record(result.path, spec, RoundSpec), Provenance()) == []


def test_what_is_made_costs_its_cores_until_its_timeout() -> None:
    ((unit_id, order),) = registered_orders(
        parse_record(Path("r201.json"), SPEC, RoundSpec), Provenance("sha", "c", "night")
    )
    assert (unit_id, str(order.attempt_usd), order.attempts) == ("blend/r201-blend/2b", "1.402400", 1)
    assert (order.round, order.app, order.gpu, order.timeout) == (201, "lamps-r201", None, 3600)
