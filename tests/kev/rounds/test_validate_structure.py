"""Keys, types and names of a spec: every slip of the pen is named where it is, and none is a crash."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkouts import Check, changed, good_spec, without, write_spec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kev.document import JsonPath, format_path
from kev.rounds.problems import Severity
from kev.rounds.validate import Validation, validate
from kev.text import visible

SPEC = good_spec()
SHARED_CHECKOUT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

NAMED_THINGS = {"studies", "parents", "arms", "panels", "criteria", "confirm", "versus"}
"""Tables whose keys are names that the spec itself chooses: any spelling of them is right."""

TABLES_BY_NAME = {"reads", "sources", "read_timeout", "locked_args", "candidate_reads"}
"""Tables whose keys must be names given elsewhere in the spec."""


def keys_of(value: Any, where: JsonPath = ()) -> list[JsonPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [(*where, key) for key in value] if isinstance(value, dict) else []
    return found + [place for key, item in items for place in keys_of(item, (*where, key))]


ALL_KEYS = keys_of(SPEC)
FIXED_KEYS = [place for place in ALL_KEYS if place[-2:-1] == () or place[-2] not in NAMED_THINGS | {"reads"}]
"""Keys that the shape of a spec fixes, and names in tables that must be names given elsewhere."""
FIXED_KEYS += [place for place in ALL_KEYS if place[-2:-1] == ("reads",) and len(place) > 2]


def mistyped(key: str, kind: str, at: int) -> str:
    at %= len(key)
    match kind:
        case "dropped":
            return key[:at] + key[at + 1 :]
        case "doubled":
            return key[:at] + key[at] + key[at:]
        case "swapped":
            return key[:at] + key[at : at + 2][::-1] + key[at + 2 :]
        case "neighbour":
            return key[:at] + ("x" if key[at] != "x" else "c") + key[at + 1 :]
        case _:
            return key.upper() if key != key.upper() else key + "_"


def renamed(spec: Any, where: JsonPath, new: str) -> Any:
    """A copy of `spec` with the key at `where` spelled `new`, in its old place."""
    copied = json.loads(json.dumps(spec))
    holder: Any = copied
    for part in where[:-1]:
        holder = holder[part]
    items = [(new if key == where[-1] else key, item) for key, item in holder.items()]
    holder.clear()
    holder.update(items)
    return copied


def places(result: Validation) -> set[JsonPath]:
    return {finding.where for finding in result.findings}


def test_the_good_spec_is_good(check: Check) -> None:
    result = check(SPEC)
    assert result.of(Severity.PROBLEM) == []
    assert {finding.code for finding in result.of(Severity.WARNING)} == {"not-registered", "needs-watcher"}


@SHARED_CHECKOUT
@given(
    st.sampled_from(FIXED_KEYS),
    st.sampled_from(["dropped", "doubled", "swapped", "neighbour", "case"]),
    st.integers(0, 40),
)
def test_any_mistyped_key_is_named_where_it_stands(check: Check, where: JsonPath, kind: str, at: int) -> None:
    new = mistyped(str(where[-1]), kind, at)
    siblings = [place[-1] for place in ALL_KEYS if place[:-1] == where[:-1]]
    if new in siblings or not new:
        return
    result = check(renamed(SPEC, where, new))
    typo = (*where[:-1], new)
    found = [finding for finding in result.findings if finding.where == typo]
    assert found, f"{format_path(typo)} went through"
    if where[0] not in ("budget", "recovery", "construction"):
        assert not result.ok
        assert any(finding.severity is Severity.PROBLEM for finding in found)


def test_all_fixed_keys_are_tried() -> None:
    """Guards the property above: the fixture holds every key that a spec can have."""
    from kev.records import spec as records

    bases = (records.SpecRecord, records.Note)
    shapes = [shape for shape in vars(records).values() if isinstance(shape, type) and shape not in bases]
    shapes = [shape for shape in shapes if issubclass(shape, records.SpecRecord)]
    every = {key for shape in shapes for key in shape.model_fields}
    assert every - {str(place[-1]) for place in FIXED_KEYS} == {"archive"}


@pytest.mark.parametrize(
    ("where", "new", "right"),
    [
        (("studies", "r201-full", "budget"), "buget", "budget"),
        (("rule", "panels", "street", "exclude_sources"), "exclude_source", "exclude_sources"),
        (("confirm", "tests", "candidate_reads"), "candidate_read", "candidate_reads"),
        (("temperature", "ci", "samples"), "smaples", "samples"),
        (("budget", "hard_cap"), "hardcap", "hard_cap"),
    ],
)
def test_the_nearest_known_key_is_offered(check: Check, where: JsonPath, new: str, right: str) -> None:
    result = check(renamed(SPEC, where, new))
    (finding,) = (finding for finding in result.findings if finding.where == (*where[:-1], new))
    assert finding.message.endswith(f"did you mean {right}?")


@pytest.mark.parametrize(
    ("where", "new"),
    [
        (("studies", "r201-full"), "r201-ful"),
        (("reads", "street"), "stret"),
        (("parents", "base"), "bsae"),
        (("rule", "panels", "street"), "streets"),
        (("arms", "2b-full"), "3b_full"),
    ],
)
def test_a_mistyped_name_is_found_where_the_right_one_is_used(check: Check, where: JsonPath, new: str) -> None:
    result = check(renamed(SPEC, where, new))
    assert any(new in finding.message or new in map(str, finding.where) for finding in result.of(Severity.PROBLEM))


DIGITS = "9" * 5000
HARD_TEXTS = [
    *("runs/{tag}", "{", "/", "\x00", "evals", "evals/../x", "evals/street-v1", "experiments/round201/delta.json"),
    *("a.b.lower", "H200:9", "transfer", "held", "--split='x", f"runs/r{DIGITS}/x", f"runs/x/{DIGITS}-trial-{DIGITS}"),
    *(f"H200:{DIGITS}", f"street.acc_{DIGITS}k_plus.lower", "x" * 5000),
]
"""Texts that are nearly right, and texts that no file can be named or no number written with."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(HARD_TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(parent=SHARED_CHECKOUT, max_examples=400)
@given(st.sampled_from([(), *ALL_KEYS]), JSON)
def test_any_json_at_any_key_is_findings_and_never_an_exception(check: Check, where: JsonPath, value: Any) -> None:
    result = check(changed(SPEC, *where, to=value) if where else value)
    for finding in result.findings:
        assert visible(str(finding)) == str(finding)
        assert len(str(finding)) < 2000
    json.dumps(result.to_json())


@SHARED_CHECKOUT
@given(st.sampled_from(ALL_KEYS))
def test_a_key_left_out_is_no_exception_and_a_required_one_is_named(check: Check, where: JsonPath) -> None:
    result = check(without(SPEC, *where))
    required = {
        "round",
        "registered",
        "rule",
        "plan",
        "suite",
        "transfer",
        "timeout",
        "left",
        "op",
        "right",
        "path",
        "sha256",
    }
    if where[-1] in required and where[0] in ("studies", "rule", "round", "registered"):
        assert any(finding.code == "missing-key" and finding.where == where for finding in result.findings)


def test_one_broken_part_hides_no_other(check: Check) -> None:
    spec = changed(SPEC, "studies", "r201-full", "timeout", to="long")
    spec = changed(spec, "rule", "criteria", "2_short_brier_upper_at_most_0.02", "left", to="short.bier.upper")
    spec = changed(spec, "arms", "2b-delta", "parent", to=["base"])
    spec = changed(spec, "temperature", "sources", "held", to=["bridge"])
    wrong = {format_path(finding.where) for finding in check(spec).of(Severity.PROBLEM)}
    assert wrong == {
        "studies.r201-full.timeout",
        'rule.criteria["2_short_brier_upper_at_most_0.02"].left',
        "arms.2b-delta.parent",
        "temperature.sources.held[0]",
    }


def test_a_part_that_cannot_be_read_still_counts_as_there(check: Check) -> None:
    result = check(changed(SPEC, "rule", "panels", "street", "metrics", to="acc"))
    assert [format_path(finding.where) for finding in result.of(Severity.PROBLEM)] == ["rule.panels.street.metrics"]


@pytest.mark.parametrize("text", ['{"round": 1, "round": 2}', '{"round": 1, "r\\u006fund": 2}'])
def test_a_repeated_key_is_a_problem_with_both_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r1.json"
    path.write_text(text.replace(", ", ",\n"))
    (found,) = (finding for finding in validate(path, tmp_path).findings if finding.code == "repeated-key")
    assert found.where == ("round",)
    assert "lines 1 and 2" in found.message


@pytest.mark.parametrize(
    ("table", "first", "second"),
    [("studies", "r201-full", "R201-Full"), ("arms", "2b-full", "2B-full"), ("parents", "base", "BASE"),
     ("reads", "street", "STREET")],
)  # fmt: skip
def test_names_that_differ_only_in_case_are_refused_with_both(
    check: Check, table: str, first: str, second: str
) -> None:
    result = check(changed(SPEC, table, second, to=SPEC[table][first]))
    (twin,) = (finding for finding in result.findings if finding.code == "case-twins")
    assert twin.severity is Severity.PROBLEM
    assert repr(first) in twin.message
    assert repr(second) in twin.message
    assert twin.message.count("line ") == 2


def test_names_that_differ_only_in_unicode_form_are_refused(check: Check) -> None:
    arm = SPEC["arms"]["2b-full"]
    spec = changed(SPEC, "arms", to={**SPEC["arms"], "2b-caf\u00e9": arm, "2b-cafe\u0301": arm})
    assert "case-twins" in {finding.code for finding in check(spec).findings}


@pytest.mark.parametrize("encode", [lambda t: b"\xef\xbb\xbf" + t, lambda t: t.replace(b"\n", b"\r\n")])
def test_a_mark_at_the_start_and_windows_lines_change_nothing(checkout: Path, tmp_path: Path, encode: Any) -> None:
    path = write_spec(tmp_path / "r201.json", SPEC)
    before = validate(path, checkout).to_json()
    path.write_bytes(encode(path.read_bytes()))
    assert validate(path, checkout).to_json() == before


def test_a_finding_has_the_line_of_its_key(checkout: Path, tmp_path: Path) -> None:
    path = write_spec(tmp_path / "r201.json", changed(SPEC, "studies", "r201-delta", "gpu", to="H20O"))
    (found,) = validate(path, checkout).of(Severity.PROBLEM)
    assert path.read_text().splitlines()[(found.line or 0) - 1].strip() == '"gpu": "H20O",'
