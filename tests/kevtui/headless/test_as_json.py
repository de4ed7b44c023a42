"""The JSON of a Snapshot is exact, safe to print, and what docs/snapshot.schema.json says."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kevtui.headless import as_json, schema
from kevtui.observe.snapshot import Finding, Snapshot

DOCUMENTED = Path(__file__).parents[3] / "docs" / "snapshot.schema.json"


def mismatches(value: Any, rule: dict[str, Any], root: dict[str, Any], where: str = "$") -> list[str]:
    """What of `value` breaks `rule`, for the part of JSON schema that the documented one uses."""
    if "$ref" in rule:
        return mismatches(value, root["$defs"][rule["$ref"].removeprefix("#/$defs/")], root, where)
    if "anyOf" in rule:
        found = [mismatches(value, option, root, where) for option in rule["anyOf"]]
        return [] if any(not one for one in found) else min(found, key=len)
    if "const" in rule or "enum" in rule:
        return [] if value in rule.get("enum", [rule.get("const")]) else [f"{where}: {value!r} is not allowed"]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if rule["type"] == "null":
        return [] if value is None else [f"{where}: {value!r} is not null"]
    if not isinstance(value, kinds[rule["type"]]) or (isinstance(value, bool) and rule["type"] != "boolean"):
        return [f"{where}: {value!r} is no {rule['type']}"]
    if "pattern" in rule and not re.search(rule["pattern"], value):
        return [f"{where}: {value!r} does not match {rule['pattern']}"]
    found = []
    if rule["type"] == "array":
        for index, item in enumerate(value):
            found += mismatches(item, rule["items"], root, f"{where}[{index}]")
    if rule["type"] == "object":
        properties, other = rule.get("properties", {}), rule.get("additionalProperties")
        found += [f"{where}: {name} is missing" for name in rule.get("required", []) if name not in value]
        for name, item in value.items():
            if name in properties:
                found += mismatches(item, properties[name], root, f"{where}.{name}")
            elif other:
                found += mismatches(item, other, root, f"{where}.{name}")
            else:
                found.append(f"{where}: {name} is not documented")
    return found


def test_the_documented_schema_is_the_one_the_dataclasses_give() -> None:
    assert json.loads(DOCUMENTED.read_text()) == schema.build(), (
        "renew it: python -m kevtui.headless.schema > docs/snapshot.schema.json"
    )


def test_a_full_snapshot_keeps_to_the_schema(snapshot: Snapshot) -> None:
    rules = schema.build()
    assert mismatches(json.loads(as_json.render(snapshot)), rules, rules) == []


def test_an_empty_snapshot_keeps_to_the_schema(snapshot: Snapshot) -> None:
    rules = schema.build()
    empty = Snapshot(taken_at=snapshot.taken_at, title="r1", root=".")
    assert mismatches(json.loads(as_json.render(empty)), rules, rules) == []


def test_the_schema_refuses_a_number_where_money_belongs(snapshot: Snapshot) -> None:
    rules = schema.build()
    value = as_json.to_json(snapshot)
    value["money"]["spent"] = 291.69
    assert mismatches(value, rules, rules) == ["$.money.spent: 291.69 is no string"]


@pytest.mark.parametrize("figure", ["291.69423574", "1000", "-0.000000001", "0.10", "1E+3"])
def test_money_is_a_decimal_string_that_loses_no_digit(snapshot: Snapshot, figure: str) -> None:
    money = replace(snapshot.money, spent=Decimal(figure))
    text = as_json.to_json(replace(snapshot, money=money))["money"]["spent"]
    assert Decimal(text) == Decimal(figure)
    assert re.fullmatch(r"-?\d+(\.\d+)?", text)


def test_what_is_not_known_is_null(snapshot: Snapshot) -> None:
    value = as_json.to_json(snapshot)
    assert value["money"]["gateway_spent"] is None
    assert value["readout"]["arms"]["27b-a"]["passed"] is None
    assert value["readout"]["candidates"] == {"9b": "9b-a", "27b": None}


def test_named_things_are_found_by_their_names(snapshot: Snapshot) -> None:
    value = as_json.to_json(snapshot)
    assert value["studies"]["r41-27b"]["trials"]["trial-0"]["step"] == 420
    assert value["studies"]["r41-27b"]["calls"] == {"trial-0": "fc-01"}
    assert value["leases"]["r41-27b/trial-0"]["state"] == "fresh"
    assert value["reads"]["cells"]["9b-a"]["docs"]["progress"] == {"done": 50, "of": 700}
    assert value["readout"]["arms"]["9b-a"]["criteria"]["1_hard"]["verdict"] == "pass"


def test_file_texts_arrive_whole_and_never_as_control_bytes(snapshot: Snapshot) -> None:
    reason = "[/red] \x1b[2J \x9b31m \x7f \r\n é \u2028"
    text = as_json.render(replace(snapshot, findings=(Finding("a\x00b", reason),)))
    assert json.loads(text)["findings"][0]["reason"] == reason
    assert re.search(r"[^\x20-\x7e\n]", text) is None


def test_half_a_surrogate_pair_is_written_so_that_every_parser_reads_it(snapshot: Snapshot) -> None:
    text = as_json.render(replace(snapshot, findings=(Finding("runs/x", "lone \ud83d half"),)))
    assert json.loads(text)["findings"][0]["reason"] == "lone \\ud83d half"


def test_a_figure_that_json_cannot_hold_is_null(snapshot: Snapshot) -> None:
    money = replace(snapshot.money, reading_age_s=float("nan"), exhausted_in_s=float("inf"))
    value = json.loads(as_json.render(replace(snapshot, money=money)))["money"]
    assert (value["reading_age_s"], value["exhausted_in_s"]) == (None, None)
