"""The read-out of a round, from rows on disk to the file."""

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_round import edited, make_rows, parse_spec, write_round, write_rows

from kev.errors import BadRows, Refused
from kev.metrics import Resamples, Rows, fit_temperature, metric, paired_bootstrap, rows_from_json, served
from kev.records.readout import parse_readout, read_readout
from kev.rounds.__main__ import main
from kev.rounds.criteria import evaluate_all
from kev.rounds.places import readout_path
from kev.rounds.readout import readout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_round(tmp_path)
    return tmp_path


def read(root: Path, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return readout(parse_spec(spec or edited()), root)


def saved(root: Path, directory: str) -> Rows:
    return rows_from_json(json.loads((root / directory / "rows.json").read_text()))


def test_the_read_out_has_the_registered_keys(root: Path) -> None:
    value = read(root)
    assert list(value) == ["round", "registered", "drop_ids", "arms", "ranking", "candidates"]
    assert list(value["arms"]["4b-a"]) == [
        "trial", "parent", "temperature", "parent_temperature", "panels", "missing", "temperature_fit",
        "temperature_ci", "temperature_source", "parent_temperature_source", "unknowable", "criteria", "complete",
        "passed",
    ]  # fmt: skip
    assert value["arms"]["4b-a"]["panels"]["hard"].keys() == {"n", "acc", "ece", "aurc"}
    assert value["arms"]["4b-a"]["panels"]["hard"]["acc"].keys() == {"candidate", "parent", "delta", "ci95"}
    assert value["arms"]["4b-a"]["panels"]["hard"]["aurc"].keys() == {"candidate", "parent"}
    assert value["candidates"] == {"4b": "4b-a"}
    assert value["ranking"] == {"4b": ["4b-a"]}


def test_both_sides_are_compared_as_served(root: Path) -> None:
    arm = read(root)["arms"]["4b-a"]
    candidate_t = fit_temperature(saved(root, "runs/r41-4b-a-cal")).temperature
    parent_t = fit_temperature(saved(root, "runs/p4/00-trial-0/development")).temperature
    assert (arm["temperature"], arm["parent_temperature"]) == (candidate_t, parent_t)
    candidate = served(saved(root, "runs/r41-4b-a-hard"), candidate_t)
    parent = served(saved(root, "runs/p4-hard"), parent_t)
    difference = paired_bootstrap(candidate, parent, ["ece"])["ece"]
    found = arm["panels"]["hard"]["ece"]
    assert found["candidate"] == metric(candidate, "ece")
    assert found["parent"] == metric(parent, "ece")
    assert found["delta"] == difference.delta
    # A matrix product may round its last digit by how many metrics were asked for together.
    assert found["ci95"] == pytest.approx(difference.ci95, rel=1e-12)


def test_a_pooled_parent_is_fitted_on_its_own_reads_of_the_pool(root: Path) -> None:
    spec = edited()
    spec["parents"]["4b"]["pooled"] = True
    arm = read(root, spec)["arms"]["4b-a"]
    assert arm["parent_temperature"] == fit_temperature(saved(root, "runs/p4-cal")).temperature
    assert arm["parent_temperature_source"] == {"kind": "pool", "reads": ["runs/p4-cal"], "questions": 40}


def test_the_records_of_excluded_reads_and_other_sources_leave_the_pool(root: Path) -> None:
    rows = make_rows(3, strength=2.0, source="cal", start=200) + make_rows(4, strength=2.0, source="other", n=10)
    write_rows(root, "runs/r41-4b-a-cal", rows)
    write_rows(root, "runs/r41-4b/00-trial-0/transfer", make_rows(5, strength=2.0, source="cal", start=236, n=8))
    spec = edited(temperature={"reads": ["cal"], "sources": {"cal": ["cal"]}, "exclude_reads": ["transfer"]})
    fit = read(root, spec)["arms"]["4b-a"]["temperature_fit"]
    assert fit == {
        "reads": ["runs/r41-4b-a-cal"],
        "sources": {"runs/r41-4b-a-cal": ["cal"]},
        "exclude_reads": ["runs/r41-4b/00-trial-0/transfer"],
        "questions": 36,
        "excluded_questions": 4,
    }


def test_a_missing_panel_leaves_what_is_not_known_unknown(root: Path) -> None:
    shutil.rmtree(root / "runs/p4-docs")
    value = read(root)
    arm = value["arms"]["4b-a"]
    assert arm["missing"] == ["parent:runs/p4-docs"]
    assert arm["criteria"] == {"1_hard": True, "2_both": None, "2_unknowable": True}
    assert (arm["complete"], arm["passed"]) == (False, None)
    assert arm["unknowable"]["parent"] is None
    assert value["candidates"] == {"4b": None}


def test_a_criterion_that_failed_decides_even_while_rows_are_missing(root: Path) -> None:
    shutil.rmtree(root / "runs/p4-docs")
    spec = edited()
    spec["rule"]["criteria"]["1_hard"]["right"] = 0.9
    arm = read(root, spec)["arms"]["4b-a"]
    assert (arm["complete"], arm["passed"]) == (False, False)


def test_a_missing_pool_or_parent_is_reported_and_never_raised(root: Path) -> None:
    shutil.rmtree(root / "runs/r41-4b-b-cal")
    shutil.rmtree(root / "runs/p4")
    arms = read(root)["arms"]
    assert arms["4b-b"] == {
        "trial": "runs/r41-4b/01-trial-1",
        "parent": "runs/p4/00-trial-0",
        "temperature": None,
        "missing": ["candidate:runs/r41-4b-b-cal", "parent:runs/p4/00-trial-0/development/rows.json"],
        "complete": False,
        "passed": None,
    }
    assert arms["4b-a"]["missing"] == ["parent:runs/p4/00-trial-0/development/rows.json"]


def test_a_round_without_a_pool_names_the_development_rows_it_waits_for(root: Path) -> None:
    spec = edited()
    del spec["temperature"]
    assert read(root, spec)["arms"]["4b-a"] == {
        "trial": "runs/r41-4b/00-trial-0",
        "parent": "runs/p4/00-trial-0",
        "missing": ["candidate:runs/r41-4b/00-trial-0/development/rows.json"],
        "complete": False,
        "passed": None,
    }


def test_a_shipped_temperature_is_told_where_the_checkpoint_is_here(root: Path) -> None:
    assert "shipped" not in read(root)["arms"]["4b-a"]["parent_temperature_source"]
    (root / "runs/p4/00-trial-0/checkpoint").mkdir()
    (root / "runs/p4/00-trial-0/checkpoint/head.json").write_text('{"temperature": 1.5}')
    assert read(root)["arms"]["4b-a"]["parent_temperature_source"] == {
        "kind": "trial development rows",
        "rows": "runs/p4/00-trial-0/development/rows.json",
        "suite": None,
        "training_corpus": None,
        "shipped": 1.5,
    }


def test_an_optional_panel_may_be_absent(root: Path) -> None:
    spec = edited()
    spec["rule"]["panels"]["extra"] = {"reads": ["hardtest"], "metrics": ["acc"], "optional": True}
    arm = read(root, spec)["arms"]["4b-a"]
    assert arm["missing_optional"] == ["candidate:runs/r41-4b-a-hardtest", "parent:runs/p4-hardtest"]
    assert (arm["missing"], arm["passed"]) == ([], True)


def exclude(root: Path, content: Any) -> dict[str, Any]:
    path = root / "private.json"
    path.write_text(json.dumps(content))
    spec = edited()
    entry = {"path": "private.json", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    spec["rule"]["panels"]["hard"]["exclude_file"] = entry
    return spec


@pytest.mark.parametrize(
    ("content", "excluded"),
    [
        ({"ids": ["hard-003"], "salt": "x"}, 1),
        ({"ids": ["hard-g003"]}, 2),
        (["hard-003", "hard-g004"], 3),
        ({"sources": ["docs"], "tasks": []}, 0),
    ],
)
def test_an_exclude_file_leaves_out_ids_and_groups_on_both_sides(root: Path, content: Any, excluded: int) -> None:
    panel = read(root, exclude(root, content))["arms"]["4b-a"]["panels"]["hard"]
    assert (panel["n"], panel["excluded"]) == (40 - excluded, excluded)


def test_an_exclude_file_may_be_absent_but_not_changed(root: Path) -> None:
    spec = exclude(root, {"ids": ["hard-003"]})
    (root / "private.json").write_text('{"ids": []}')
    with pytest.raises(Refused, match=r"private\.json: sha256 is"):
        read(root, spec)
    (root / "private.json").unlink()
    arm = read(root, spec)["arms"]["4b-a"]
    assert arm["missing"] == ["exclude_file:private.json"]
    assert "hard" not in arm["panels"]


def test_dropped_ids_leave_every_panel_and_one_that_matches_nothing_is_named(root: Path) -> None:
    value = read(root, edited(drop_ids=["hard-001", "docs-101", "no-such-record"]))
    assert value["drop_ids"] == ["docs-101", "hard-001", "no-such-record"]
    panels = value["arms"]["4b-a"]["panels"]
    assert (panels["hard"]["n"], panels["both"]["n"]) == (39, 78)
    assert value["notes"] == ["drop_ids: 'no-such-record' matches no row of any panel"]


def test_ids_that_look_alike_are_two_records_and_are_named(root: Path) -> None:
    for directory in ("runs/r41-4b-a-hard", "runs/r41-4b-b-hard", "runs/p4-hard"):
        rows = json.loads((root / directory / "rows.json").read_text())
        rows[0]["id"], rows[1]["id"] = "na\u00efve", "nai\u0308ve"
        write_rows(root, directory, rows)
    value = read(root, edited(drop_ids=["nai\u0308ve"]))
    assert value["arms"]["4b-a"]["panels"]["hard"]["n"] == 39
    assert r"ids 'na\xefve' and 'nai\u0308ve' look alike and are two records" in value["notes"][0]


def test_a_reference_is_scored_as_saved_and_compared_on_the_same_rows(root: Path) -> None:
    write_rows(root, "runs/reference", make_rows(9, strength=2.0, source="hard"))
    spec = edited()
    spec["rule"]["panels"]["hard"]["versus"] = {"teacher": "runs/reference", "absent": "runs/nowhere"}
    arm = read(root, spec)["arms"]["4b-a"]
    candidate = served(saved(root, "runs/r41-4b-a-hard"), arm["temperature"])
    reference = saved(root, "runs/reference")
    found = paired_bootstrap(candidate, reference, ["acc"])["acc"]
    assert arm["panels"]["hard"]["versus"].keys() == {"teacher"}
    assert arm["panels"]["hard"]["versus"]["teacher"]["acc"] == {
        "reference": metric(reference, "acc"),
        "delta": found.delta,
        "ci95": found.ci95,
    }
    assert arm["missing_optional"] == ["versus:runs/nowhere"]
    assert arm["passed"] is True


def test_length_buckets_come_from_the_rows_own_token_counts(root: Path) -> None:
    spec = edited()
    spec["rule"]["panels"]["hard"]["by_length"] = {"edges": [1024, 2048]}
    with pytest.raises(BadRows, match="panel hard: its rows carry no state_tokens"):
        read(root, spec)
    for directory in ("runs/r41-4b-a-hard", "runs/r41-4b-b-hard", "runs/p4-hard"):
        rows = json.loads((root / directory / "rows.json").read_text())
        write_rows(root, directory, [{**row, "state_tokens": 100 * place} for place, row in enumerate(rows)])
    panel = read(root, spec)["arms"]["4b-a"]["panels"]["hard"]
    assert panel["by_length"] == {"edges": [1024, 2048], "tokens": "rows"}
    sizes = {name: panel[f"acc_{name}"]["n"] for name in ("under_1k", "1k_2k", "2k_plus", "1k_plus")}
    assert sizes == {"under_1k": 11, "1k_2k": 10, "2k_plus": 19, "1k_plus": 29}


def test_an_unknowable_read_without_such_rows_is_unknown_and_said(root: Path) -> None:
    arm = read(root, edited(rule={**edited()["rule"], "unknowable": "hard"}))["arms"]["4b-a"]
    assert arm["unknowable"] == {"candidate": None, "parent": None}
    assert arm["criteria"]["2_unknowable"] is None
    assert arm["passed"] is None
    assert "candidate:runs/r41-4b-a-hard holds no unknowable rows" in arm["notes"]


def test_an_arm_that_may_not_be_chosen_is_reported_and_no_candidate(root: Path) -> None:
    spec = edited()
    spec["arms"]["4b-a"]["select"] = False
    value = read(root, spec)
    assert value["arms"]["4b-a"]["passed"] is True
    assert value["candidates"] == {"4b": None}


def test_rows_that_disagree_name_arm_panel_file_record_and_question(root: Path) -> None:
    rows = json.loads((root / "runs/p4-hard/rows.json").read_text())
    rows[4]["label"] = (rows[4]["label"] + 1) % 3
    write_rows(root, "runs/p4-hard", rows)
    with pytest.raises(BadRows) as caught:
        read(root)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("arm 4b-a", "panel hard", "r41-4b-a-hard/rows.json", "record 'hard-004'", "question 'q'", "label"):
        assert part in message


def test_an_arm_whose_rows_are_damaged_leaves_the_others_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "runs/r41-4b-b-hard/rows.json").write_text("[{")
    assert run_command(root) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "r41-4b-b-hard/rows.json: cut short" in line
    value = read_readout(root / "runs/r41-readout/round41.json").readout.to_json()
    assert value["candidates"] == {"4b": "4b-a"}
    damaged = value["arms"]["4b-b"]
    assert (damaged["error"], damaged["complete"], damaged["passed"]) == (line, False, None)


@pytest.mark.parametrize(
    ("panel", "reason"),
    [
        ({"reads": ["hard"], "metrics": ["accuracy"]}, "panel odd: metric 'accuracy' has no interval"),
        ({"reads": ["hard"], "report": ["accuracy"]}, "panel odd: there is no metric 'accuracy'"),
        ({"reads": [], "metrics": ["acc"]}, "panel odd: lists no reads"),
        ({"reads": ["hard"], "metrics": ["acc"], "source": "nowhere"}, "panel odd: no scored rows are left"),
        ({"reads": ["hard"], "report": ["acc"], "source": "nowhere"}, "panel odd: no rows are left"),
        ({"reads": ["hard"], "report": ["acc"], "by_length": {"edges": [5]}}, "panel odd: length edges"),
    ],
)
def test_a_panel_that_cannot_be_computed_says_why_in_one_line(root: Path, panel: dict[str, Any], reason: str) -> None:
    spec = edited()
    spec["rule"]["panels"]["odd"] = panel
    with pytest.raises(BadRows) as caught:
        read(root, spec)
    assert str(caught.value).startswith(f"arm 4b-a, {reason}")
    assert "\n" not in str(caught.value)


def test_a_directory_that_cannot_exist_is_missing(root: Path) -> None:
    spec = edited()
    spec["arms"]["4b-a"]["reads"] = "runs/\x00{tag}"
    assert read(root, spec)["arms"]["4b-a"]["missing"] == ["candidate:runs/\x00cal"]


def test_neither_the_order_of_rows_nor_their_split_over_reads_changes_a_comparison(root: Path) -> None:
    before = read(root)["arms"]["4b-a"]["panels"]["hard"]
    spec = edited()
    spec["reads"] |= {"late": {"suite": "evals/hard"}, "early": {"suite": "evals/hard"}}
    spec["rule"]["panels"]["hard"]["reads"] = ["late", "early"]
    for number, side in enumerate(("r41-4b-a", "r41-4b-b", "p4")):
        rows = json.loads((root / f"runs/{side}-hard/rows.json").read_text())
        random.Random(number).shuffle(rows)
        write_rows(root, f"runs/{side}-early", [row for row in rows if row["id"] < "hard-013"])
        write_rows(root, f"runs/{side}-late", [row for row in rows if row["id"] >= "hard-013"])
    after = read(root, spec)["arms"]["4b-a"]["panels"]["hard"]
    for name in ("acc", "ece"):
        for key in ("delta", "ci95"):
            assert after[name][key] == before[name][key]
        for key in ("candidate", "parent"):
            assert after[name][key] == pytest.approx(before[name][key], rel=1e-14)


def test_resampling_is_that_of_the_registered_seed_whatever_was_drawn_before(root: Path) -> None:
    first = read(root)
    shared = Resamples()
    again = readout(parse_spec(edited()), root, resamples=shared)
    assert readout(parse_spec(edited()), root, resamples=shared) == again == first


def test_every_boolean_follows_from_the_intervals_in_the_file(root: Path) -> None:
    spec = parse_spec(edited())
    for arm in readout(spec, root)["arms"].values():
        criteria = {name: criterion.to_json() for name, criterion in spec.rule.criteria.items()}
        assert {name: found.passed for name, found in evaluate_all(criteria, arm).items()} == arm["criteria"]


def run_command(root: Path, *flags: str) -> int:
    path = root / "experiments/rounds/r41.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(edited()))
    return main(["readout", str(path), "--root", str(root), *flags])


def test_the_command_writes_the_file_and_prints_every_criterion(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(root) == 0
    stored = parse_readout(Path("round41.json"), json.loads((root / "runs/r41-readout/round41.json").read_text()))
    assert stored.shape == "current"
    assert stored.readout.candidates == {"4b": "4b-a"}
    printed = capsys.readouterr().out
    for word in ("4b-a", "4b-b", "1_hard", "2_both", "2_unknowable", "candidate 4b: 4b-a"):
        assert word in printed


def test_json_is_the_file_itself_and_out_is_another_place(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(root, "--json", "--out", str(root / "elsewhere")) == 0
    assert capsys.readouterr().out == (root / "elsewhere/round41.json").read_text()
    assert not readout_path(parse_spec(edited()), root).exists()


def test_a_failed_read_out_leaves_the_last_one_as_it_was(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(root)
    before = (root / "runs/r41-readout/round41.json").read_bytes()
    (root / "runs/p4-hard/rows.json").write_text("[{")
    assert run_command(root) == 1
    assert "p4-hard/rows.json: cut short" in capsys.readouterr().err
    assert (root / "runs/r41-readout/round41.json").read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "taken").write_text("a file")
    assert run_command(root, "--out", str(root / "taken/there")) == 1
    assert capsys.readouterr().err.endswith("round41.json: cannot be written (Not a directory)\n")
