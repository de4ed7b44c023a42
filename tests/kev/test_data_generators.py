"""Generators: every label follows from the text by the stated rule, and nothing leaks between partitions."""

import json
import re
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kev.data import (
    calendar,
    counts,
    dates,
    delegation,
    levels,
    parcels,
    policies,
    stock,
    suppliers,
    tickets,
    words,
)
from kev.data.draw import Draw
from kev.data.part import Generator, Pack, Part
from kev.data.record import DataRecord
from kev.data.render import render, text_sha256
from kev.data.suites import SUITES

EVALS = Path(__file__).parents[2] / "evals"

SOLVERS: dict[str, ModuleType] = {
    module.SOURCE: module
    for module in (calendar, counts, dates, delegation, levels, parcels, policies, stock, suppliers, tickets)
} | {policies.HELD_OUT_SOURCE: policies}


def frozen() -> dict[str, list[dict[str, Any]]]:
    paths = sorted(EVALS.glob("*/*.jsonl"))
    return {
        f"{path.parent.name}/{path.stem}": [json.loads(line) for line in path.read_text().split("\n") if line]
        for path in paths
    }


PARTITIONS = frozen()
EVERYTHING = [record for records in PARTITIONS.values() for record in records]


def answers(source: str) -> list[tuple[dict[str, Any], Any]]:
    return [
        (record, record["questions"]["answer"]["label"])
        for record in EVERYTHING
        if record["_meta"]["source"] == source and record["_meta"]["variant"] == "clean"
    ]


def test_the_frozen_suites_hold_every_kind_of_record() -> None:
    sources = {record["_meta"]["source"] for record in EVERYTHING}
    assert sources >= {*SOLVERS, "unknowable", "unknowable_control", "long_state", "long_state_control"}


@pytest.mark.parametrize("source", SOLVERS)
def test_every_frozen_label_is_the_solvers_answer_to_the_facts_as_they_came_back_from_the_file(source: str) -> None:
    for record, label in answers(source):
        assert SOLVERS[source].solve(record["_meta"]["facts"]) == label, record["_meta"]["id"]


def test_counting_from_the_text_alone_gives_the_label() -> None:
    for record, label in answers("counts"):
        limit, *days = (int(digits) for digits in re.findall(r"\d+", record["state"]))
        assert sum(value > limit for value in days) == label


def test_reading_the_clock_from_the_text_alone_gives_the_label() -> None:
    for record, label in answers("calendar"):
        a, b, c, d = re.findall(r"\d\d:\d\d", record["state"])
        assert (a < d and c < b) == label


def test_looking_up_the_stock_in_the_state_alone_gives_the_label() -> None:
    for record, label in answers("stock"):
        goods = record["questions"]["answer"]["instructions"].removesuffix("?").split()[-1]
        held = {place: shelves[goods] for place, shelves in record["state"]["stock"].items()}
        assert [place for place, count in held.items() if count == max(held.values())] == [label]


def test_subtracting_the_dates_in_the_text_alone_gives_the_label() -> None:
    written = re.compile(r"(\w+) (\d+), (\d{4})")
    for record, label in answers("dates"):
        text = record["state"]
        days = int(next(iter(re.findall(r"(\d+) days", text))))
        ends = [date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", text)]
        ends += [date(int(y), dates.MONTHS.index(m) + 1, int(d)) for m, d, y in written.findall(text)]
        assert ((ends[1] - ends[0]).days <= days) == label


def test_walking_the_chain_in_the_text_alone_gives_the_label() -> None:
    patterns = [
        r"(\w+) is away, (\w+) stands",
        r"While (\w+) travels, (\w+) decides",
        r"(?P<b>\w+) replaces (?P<a>\w+)",
    ]
    for record, label in answers("delegation"):
        links = {}
        for pattern in patterns:
            for found in re.finditer(pattern, record["state"]):
                names = found.groupdict() or {"a": found[1], "b": found[2]}
                links[names["a"]] = names["b"]
        person = re.search(r"goes to (\w+)", record["questions"]["answer"]["instructions"])[1]  # type: ignore[index]
        while person in links:
            person = links[person]
        assert person == label


def test_the_desk_of_a_ticket_is_the_one_whose_description_names_its_matter() -> None:
    for record, label in answers("tickets"):
        text, question = record["state"]["ticket"], record["questions"]["answer"]
        named = [
            desk for desk, handles in question["criteria"].items() if any(m in text for m in handles.split(" and "))
        ]
        hurt = "hurt" in text
        assert ([re.search(r"it is the (\w+) desk", question["instructions"])[1]] if hurt else named) == [label]  # type: ignore[index]


@pytest.mark.parametrize("name", sorted(PARTITIONS))
def test_a_pair_differs_in_one_sentence_flips_its_answer_and_needs_every_fact(name: str) -> None:
    pairs = defaultdict(list)
    for record in PARTITIONS[name]:
        if record["_meta"].get("pair_id"):
            pairs[record["_meta"]["pair_id"]].append(record)
    for a, b in pairs.values():
        assert a["questions"]["answer"]["label"] != b["questions"]["answer"]["label"]
        assert a["state"]["policy"] == b["state"]["policy"]
        sentences = [re.split(r"(?<=\.) ", record["state"]["case"]) for record in (a, b)]
        assert sum(x != y for x, y in zip(*sentences, strict=True)) == 1
        assert all(policies.decided_by_everything(record["_meta"]["facts"]) for record in (a, b))


def test_an_unknowable_twin_is_its_control_without_the_deciding_sentence() -> None:
    by_id = {record["_meta"]["id"]: record for record in EVERYTHING}
    twins = [record for record in EVERYTHING if record["_meta"]["source"] == "unknowable"]
    assert twins
    for twin in twins:
        control = by_id[twin["_meta"]["control_id"]]
        assert control["state"].startswith(twin["state"] + " ")
        assert control["_meta"]["group_id"] == twin["_meta"]["group_id"]
        masses = list(twin["questions"]["answer"]["target"].values())
        assert masses == [1 / len(masses)] * len(masses)
        kind = dates if "dates" in twin["questions"]["answer"]["src"] else levels
        assert kind.solve(twin["_meta"]["facts"]) is None


def test_a_long_state_holds_its_control_at_the_slot_that_its_note_names() -> None:
    by_group: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in EVERYTHING:
        if record["_meta"]["source"].startswith("long_state"):
            by_group[record["_meta"]["group_id"]][record["_meta"]["source"]] = record
    assert len({len(render(group["long_state"]["state"])) // 1024 for group in by_group.values()}) >= 2
    for group in by_group.values():
        control, buried = group["long_state_control"], group["long_state"]
        slot = int(re.search(r"entry (\d+) only", buried["state"])[1])  # type: ignore[index]
        assert f"\n\nEntry {slot}\n{render(control['state'])}" in buried["state"]
        assert control["questions"]["answer"]["label"] == buried["questions"]["answer"]["label"]


def test_no_state_is_in_two_partitions_of_any_suite() -> None:
    owner: dict[str, str] = {}
    for name, records in PARTITIONS.items():
        here = {text_sha256(record["state"]) for record in records}
        assert not {owner[key] for key in here & owner.keys()}, name
        clean = [record for record in records if record["_meta"]["variant"] == "clean"]
        assert len({text_sha256(record["state"]) for record in clean}) == len(clean)
        owner |= dict.fromkeys(here, name)


def test_no_two_packs_share_a_name_or_a_sentence() -> None:
    tables = [words.PEOPLE, words.PLACES, words.GOODS, words.TEAMS, tickets.MATTERS, tickets.OPENINGS, tickets.CLOSINGS]
    tables += [levels.READINGS, levels.BANDS, parcels.CLASSES, policies.FILLERS]
    tables += [{p: (t[p],) for p in Pack} for t in (tickets.INJURY, calendar.BOOKINGS, counts.LIMITS, suppliers.OFFERS)]
    tables += [{p: (t[p],) for p in Pack} for t in (delegation.LINKS, delegation.PRESENT, parcels.TARIFFS)]
    tables += [{p: (family.rule[p], family.tiered[p]) for p in Pack} for family in policies.TRAINED + policies.HELD_OUT]
    tables += [{p: [s for story in dates.STORIES[p] for s in story] for p in Pack}]
    for table in tables:
        everything = [entry for pack in Pack for entry in table[pack]]
        assert len(set(everything)) == len(everything)


def test_no_answer_is_a_safe_guess() -> None:
    for source in SOLVERS:
        labels = Counter()
        for record, label in answers(source):
            question = record["questions"]["answer"]
            position = list(question["criteria"]).index(label) if question["type"] == "choice" else int(label)
            labels[position] += 1
        options = len(labels)
        assert max(labels.values()) / sum(labels.values()) < 1 / options + 0.15, (source, labels)


def generators() -> list[Generator]:
    return [ingredient.generator for plan in SUITES for ingredient in plan.ingredients]


@pytest.mark.parametrize("generator", generators())
@pytest.mark.parametrize("pack", ["train", "development", "test"])
def test_a_generator_is_a_pure_function_of_its_stream(generator: Generator, pack: str) -> None:
    def first(seed: int) -> list[list[DataRecord]]:
        groups = generator(Draw(seed, "test"), Part.named(pack))
        return [next(groups) for _ in range(6)]

    assert first(7) == first(7)
    assert first(7) != first(8)


def test_variants_keep_the_text_and_move_only_the_options() -> None:
    by_id = {record["_meta"]["id"]: record for record in EVERYTHING}
    seen = Counter()
    for record in EVERYTHING:
        if (variant := record["_meta"]["variant"]) == "clean":
            continue
        seen[variant] += 1
        parent = by_id[record["_meta"]["parent_id"]]
        before, after = parent["questions"]["answer"], record["questions"]["answer"]
        assert record["state"] == parent["state"]
        assert record["_meta"]["group_id"] == parent["_meta"]["group_id"]
        if variant == "permuted":
            assert list(before["criteria"]) != list(after["criteria"])
            assert (before["criteria"], before["label"]) == (after["criteria"], after["label"])
        elif variant == "none_present":
            assert after["label"] == before["label"]
            assert after["criteria"].keys() - before["criteria"].keys() == {"none_of_these"}
        else:
            assert after["label"] == "none_of_these"
            assert before["label"] not in after["criteria"]
    assert seen["permuted"] == seen["none_present"] == seen["none_absent"] > 0
