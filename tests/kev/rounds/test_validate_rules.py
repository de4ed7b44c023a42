"""Each rule of a spec, broken one at a time: the finding is the expected one, at the key to change."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from checkouts import Check, changed, good_spec, without, write_checkout, write_rows, write_spec

from kev.budget import GPU_HOURLY
from kev.document import format_path
from kev.rounds.problems import Severity
from kev.rounds.validate import Validation, validate

SPEC = good_spec()
STREET = ("rule", "panels", "street")
CRITERION = ("rule", "criteria", "1_street_lower_above_0")


def found(result: Validation, severity: Severity = Severity.PROBLEM) -> list[tuple[str, str]]:
    return [(finding.code, format_path(finding.where)) for finding in result.of(severity)]


BROKEN: list[tuple[str, str, Any]] = [
    # studies
    ("unknown-gpu", "studies.r201-full.gpu", "B300"),
    ("unknown-gpu", "studies.r201-full.gpu", None),
    ("unknown-gpu", "studies.r201-full.gpu", "H200:0"),
    ("unknown-gpu", "gpu", "H20O"),
    ("out-of-range", "studies.r201-full.timeout", 59),
    ("out-of-range", "studies.r201-delta.budget", 250.01),
    ("over-budget", "studies.r201-full.budget", 55),
    ("over-budget", "studies.r201-delta.budget", 1),
    ("bad-path", "studies.r201-full.plan", "../plan.json"),
    ("missing-file", "studies.r201-full.plan", "experiments/round201/fulll.json"),
    ("missing-file", "studies.r201-full.transfer", "evals/farr-v1"),
    ("removed-suite", "studies.r201-full.transfer", "evals/external/wanli-v1"),
    ("eval-only", "studies.r201-full.suite", "evals/far-v1"),
    ("missing-split", "studies.r201-full.suite", "evals/far-v1"),
    # reads
    ("unknown-entrypoint", "reads.locked.entrypoint", "locked_tests"),
    ("missing-file", "reads.far.suite", "evals/far-v2"),
    ("removed-suite", "reads.far.suite", "./evals//external/typesafe-v1/"),
    ("bad-path", "reads.far.suite", "far-v1"),
    ("bad-path", "reads.far.suite", "evals/../far-v1"),
    ("bad-flag", "reads.held.flags", "--spilt calibration"),
    ("bad-flag", "reads.held.flags", "--split test"),
    ("bad-flag", "reads.held.flags", "--split"),
    ("missing-split", "reads.held.flags", "--split train"),
    ("bad-flag", "reads.locked.flags", "--allow-test"),
    ("unknown-size", "read_timeout.2b", None),
    ("out-of-range", "read_timeout.2b", 86_401),
    ("out-of-range", "confirm.tests.read_timeout", 0),
    ("out-of-range", "confirm.tests.read_timeout", -1),
    # arms and parents
    ("unknown-parent", "arms.2b-full.parent", "bases"),
    ("bad-path", "arms.2b-full.trial", "r201-full/00-trial-0"),
    ("bad-path", "arms.2b-full.trial", "runs/r201-full/01-trial-0"),
    ("unknown-trial", "arms.2b-full.trial", "runs/r201-full/03-trial-3"),
    ("unknown-study", "arms.2b-full.trial", "runs/r201-fulll/00-trial-0"),
    ("bad-path", "arms.2b-blend.checkpoint", "runs/r201-blend/2b-w50/checkpoint"),
    ("unknown-read", "arms.2b-blend.transfer_read", "fra"),
    ("unknown-read", "transfer_read", None),
    ("missing-file", "arms.2b-full.trained_on[0]", ["evals/lamp-v1"]),
    ("bad-path", "parents.base.trial", "p2b"),
    ("bad-path", "parents.base.checkpoint", "somewhere"),
    ("shared-directory", "arms.2b-blend", None),
    ("shared-directory", "arms.2b-delta", None),
    ("bad-path", "arms.2b-blend.reads", None),
    ("bad-path", "confirm.tests.candidate_reads", "runs/r201c/{size}-{tag}"),
    ("bad-path", "confirm.locked.candidate_reads", {"locked": "runs/lamps-r201/transfer"}),
    # templates
    ("bad-template", "arm_reads", "runs/{round}-{arms}-{tag}"),
    ("bad-template", "arm_reads", "runs/{arm"),
    ("bad-path", "arm_reads", "/tmp/{arm}-{tag}"),
    ("bad-path", "confirm.locked.candidate_reads.locked", "runs/../locked"),
    # panels
    ("unknown-read", "rule.panels.street.reads[0]", ["stret"]),
    ("repeated-read", "rule.panels.street.reads[1]", ["street", "street"]),
    ("missing-key", "rule.panels.spare.reads", []),
    ("unknown-metric", "rule.panels.street.metrics[2]", ["acc", "ece", "f1"]),
    ("unknown-metric", "rule.panels.street.metrics[2]", ["acc", "ece", "n"]),
    ("unknown-metric", "rule.panels.street.report[0]", ["nil"]),
    ("repeated-metric", "rule.panels.street.report[0]", ["acc"]),
    ("nothing-computed", "rule.panels.spare", None),
    ("unknown-source", "rule.panels.street.exclude_sources[0]", ["tunnel"]),
    ("unknown-source", "rule.panels.short.source[0]", ["quay", "streets"]),
    ("changed-file", "rule.panels.street.exclude_file.sha256", "0" * 64),
    ("bad-hash", "rule.panels.street.exclude_file.sha256", "ABC"),
    ("missing-file", "rule.panels.street.exclude_file.path", "experiments/round201/leave-in.json"),
    ("bad-edges", "rule.panels.street.by_length.edges", [4096, 4096]),
    ("bad-edges", "rule.panels.street.by_length.edges", [1000, 4096]),
    ("bad-tokenizer", "rule.panels.street.by_length.tokenizer", ["lamps/tokenizer"]),
    ("no-lengths", "rule.panels.short.by_length", True),
    # criteria and rank
    ("unknown-operator", "rule.criteria.1_street_lower_above_0.op", "=>"),
    ("bad-path", "rule.criteria.1_street_lower_above_0.left", "street-acc-lower"),
    ("unknown-panel", "rule.criteria.1_street_lower_above_0.left", "streets.acc.lower"),
    ("bad-path", "rule.criteria.1_street_lower_above_0.left", "street.acc.lowest"),
    ("unknown-value", "rule.criteria.1_street_lower_above_0.left", "street.brier.lower"),
    ("unknown-value", "rule.criteria.1_street_lower_above_0.left", "street.nll.lower"),
    ("bad-path", "rule.criteria.1_street_lower_above_0.left", "street.acc_4k_plus.lower"),
    ("unknown-value", "rule.criteria.1_street_lower_above_0.left", "street.acc_8k_plus.parent"),
    ("optional-gates", "rule.criteria.1_street_lower_above_0.left", "spare.acc.candidate"),
    ("bad-path", "rule.criteria.1_street_lower_above_0.left", "unknowable.delta"),
    ("unknown-panel", "confirm.tests.criteria.lower_above_0.left", "unknowable.candidate"),
    ("unknown-order", "rule.rank[0].order", "descending"),
    ("unknown-value", "rule.rank[1].by", "short.ece.delta"),
    ("unknown-read", "rule.unknowable", "farr"),
    # pool
    ("missing-key", "temperature.reads", []),
    ("unknown-read", "temperature.reads[0]", ["hold"]),
    ("pool-unchecked", "temperature.reads[0]", ["locked"]),
    ("unknown-read", "temperature.exclude_reads[0]", ["transfers"]),
    ("out-of-range", "temperature.ci.level", 1),
    ("out-of-range", "temperature.ci.samples", 0),
    ("unknown-source", "temperature.sources.held[0]", ["bridge"]),
    # stages
    ("missing-stage-read", "confirm.locked.candidate_reads", {}),
    # ids
    ("wrong-type", "drop_ids[1]", ["7", 7]),
]  # fmt: skip

SPECIAL = {
    "unknown-size read_timeout.2b": ("read_timeout", {"3b": 1800}, "read_timeout.3b"),
    "unknown-read transfer_read": ("transfer_read", "fra", "transfer_read"),
    "shared-directory arms.2b-blend": ("arms.2b-blend.reads.street", "runs/r201-2b-full-street", "arms.2b-blend"),
    "shared-directory arms.2b-delta": ("arms.2b-delta.reads", "runs/R201-2B-full-{tag}", "arms.2b-delta"),
    "bad-path arms.2b-blend.reads": ("arms.2b-blend.reads.street", "runs/r201/blend/street", "arms.2b-blend.reads"),
    "nothing-computed rule.panels.spare": ("rule.panels.spare.report", [], "rule.panels.spare"),
}


def keys(place: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"[.\[\]]+", place) if part]


@pytest.mark.parametrize(("code", "place", "value"), BROKEN, ids=[f"{code} {place}" for code, place, _ in BROKEN])
def test_a_broken_rule_is_found_at_its_key(check: Check, code: str, place: str, value: Any) -> None:
    at, value, expected = SPECIAL.get(f"{code} {place}", (place, value, place))
    where = keys(at)
    if isinstance(where[-1], int) and isinstance(value, list):
        where = where[:-1]
    result = check(changed(SPEC, *where, to=value))
    assert (code, expected) in found(result), found(result)


@pytest.mark.parametrize("value", ["B300", "h200", "H200:", "H200:1.5", "", None, 200, ["H200"], "any"])
def test_a_card_without_a_price_names_the_study_the_value_and_the_known_cards(check: Check, value: Any) -> None:
    (problem,) = check(changed(SPEC, "studies", "r201-full", "gpu", to=value)).of(Severity.PROBLEM)
    assert "study r201-full" in problem.message
    assert repr(value)[:40] in problem.message
    assert all(card in problem.message for card in GPU_HOURLY)


@pytest.mark.parametrize("key", ["plan", "suite", "transfer", "gpu", "timeout", "budget"])
def test_a_missing_study_key_is_a_problem(check: Check, key: str) -> None:
    assert ("missing-key", f"studies.r201-full.{key}") in found(check(without(SPEC, "studies", "r201-full", key)))


def test_the_bound_counts_every_attempt_and_trial(check: Check) -> None:
    (problem,) = check(changed(SPEC, "studies", "r201-full", "budget", to=10)).of(Severity.PROBLEM)
    # 9.2848 USD an hour, two hours, three attempts
    assert "$55.71" in problem.message


def test_a_run_shorter_than_its_first_resume_point_is_warned_about(check: Check) -> None:
    result = check(changed(SPEC, "studies", "r201-full", "timeout", to=120))
    assert result.ok
    (warning,) = (finding for finding in result.of(Severity.WARNING) if finding.code == "short-timeout")
    assert "before the first timed resume point" in warning.message
    assert "starts from zero; set save_every_steps" in warning.message
    # A LoRA trial has one attempt and no resume points, however long it may run.
    assert not any(f.code == "short-timeout" and "delta" in str(f.where) for f in result.findings)


def test_a_plan_of_a_single_step_is_warned_about(tmp_path: Path) -> None:
    write_checkout(tmp_path)
    path = tmp_path / SPEC["studies"]["r201-delta"]["plan"]
    plan = json.loads(path.read_text())
    for steps, warned in ((1, True), (2, False)):
        path.write_text(json.dumps([{**plan[0], "max_steps": steps}, *plan[1:]]))
        result = validate(write_spec(tmp_path / "r201.json", SPEC), tmp_path)
        assert (("single-step", "studies.r201-delta.plan") in found(result, Severity.WARNING)) == warned


def test_directories_of_another_round_are_warned_about(check: Check) -> None:
    spec = changed(
        SPEC, "confirm", "locked", "candidate_reads", "locked", to="runs/locked/lamps-{size}-r200-ungated/transfer"
    )
    result = check(spec)
    assert result.ok
    assert ("other-round", "confirm.locked.candidate_reads.locked") in found(result, Severity.WARNING)


def test_a_parents_directories_may_name_the_round_that_made_them(check: Check) -> None:
    spec = changed(SPEC, "parents", "base", "reads", "locked", to="runs/locked/r190-ungated/transfer")
    assert "other-round" not in {finding.code for finding in check(spec).findings}


def test_a_trial_that_no_arm_reads_is_warned_about(check: Check) -> None:
    result = check(without(SPEC, "arms", "2b-delta"))
    assert ("unread-trial", "studies.r201-delta") in found(result, Severity.WARNING)


def test_an_arm_without_a_trial_needs_a_pool_and_a_transfer_read(check: Check) -> None:
    spec = without(SPEC, "transfer_read")
    assert ("no-transfer-read", "arms.2b-blend") in found(check(without(spec, "arms", "2b-blend", "transfer_read")))
    codes = found(check(without(SPEC, "temperature")))
    assert ("no-pool", "arms.2b-blend") in codes
    assert ("no-pool", "parents.base.pooled") in codes
    assert ("missing-key", "arms.2b-blend") in found(check(without(SPEC, "arms", "2b-blend", "checkpoint")))


def test_an_arm_without_a_trial_needs_a_transfer_read_for_what_its_pool_leaves_out_alone(check: Check) -> None:
    spec = without(
        without(without(SPEC, "transfer_read"), "arms", "2b-blend", "transfer_read"), "rule", "panels", "short"
    )
    where = ("no-transfer-read", "arms.2b-blend")
    assert where in found(check(spec))
    assert where not in found(check(without(spec, "temperature", "exclude_reads")))


def test_from_round_21_on_a_moved_criterion_needs_a_pool_and_before_it_does_not(check: Check) -> None:
    spec = without(without(SPEC, "temperature"), "arms", "2b-blend")
    spec = changed(spec, "parents", "base", "pooled", to=False)
    at_accuracy_only = changed(spec, "rule", "criteria", to={CRITERION[-1]: SPEC["rule"]["criteria"][CRITERION[-1]]})
    assert "no-pool" in {code for code, _ in found(check(changed(spec, "round", to=21)))}
    assert "no-pool" not in {code for code, _ in found(check(changed(spec, "round", to=20)))}
    assert "no-pool" not in {code for code, _ in found(check(changed(at_accuracy_only, "round", to=21)))}


def test_a_pooled_read_may_not_lie_under_a_moved_criterion_and_may_lie_under_accuracy(check: Check) -> None:
    under_ece = changed(SPEC, *STREET, "reads", to=["street", "held"])
    assert {place for code, place in found(check(under_ece)) if code == "pool-in-panel"} == {
        'rule.criteria["3_ece_at_most_parent_plus_0.01"]'
    }
    under_acc = changed(SPEC, "rule", "panels", "spare", "reads", to=["far", "held"])
    assert "pool-in-panel" not in {code for code, _ in found(check(under_acc))}


def test_missing_rows_of_a_parent_are_one_finding_each_with_every_use(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), changed(SPEC, "parents", "base", "pooled", to=False))
    (tmp_path / "runs" / "p2b-street" / "rows.json").unlink()
    result = validate(path, tmp_path)
    assert found(result) == [
        ("missing-rows", "parents.base.trial"),
        ("missing-rows", "parents.base.reads.street"),
    ]
    write_rows(tmp_path / "runs" / "p2b" / "00-trial-0" / "development")
    (tmp_path / "runs" / "p2b-street" / "rows.json").write_text("[]")
    assert validate(path, tmp_path).ok


def test_what_is_missing_from_a_recorded_round_is_archived_and_no_problem(tmp_path: Path) -> None:
    spec = changed(changed(SPEC, "archive", to="rounds/r26"), "round", to=26)
    spec = changed(spec, "reads", "far", "suite", to="evals/external/wanli-v2")
    path = write_spec(write_checkout(tmp_path), spec)
    (tmp_path / "runs" / "p2b-street" / "rows.json").unlink()
    result = validate(path, tmp_path)
    codes = {code for code, _ in found(result, Severity.ARCHIVED)}
    assert result.ok, found(result)
    assert {"missing-rows", "removed-suite"} <= codes
    later = changed(spec, "round", to=27)
    assert ("removed-suite", "reads.far.suite") in found(validate(write_spec(path, later), tmp_path))


def test_a_dropped_id_that_matches_nothing_is_named_and_one_that_matches_is_not(check: Check) -> None:
    result = check(changed(SPEC, "drop_ids", to=["street/3", "absent", "STREET/3 "]))
    assert found(result, Severity.WARNING)[-2:] == [("unmatched-id", "drop_ids[1]"), ("unmatched-id", "drop_ids[2]")]
    assert "spelled 'street/3'" in result.of(Severity.WARNING)[-1].message
    (problem,) = check(changed(SPEC, "drop_ids", to=["street/3", 7])).of(Severity.PROBLEM)
    assert problem.where == ("drop_ids", 1)
    assert "the number 7" in problem.message


def test_ids_are_not_judged_while_some_records_are_not_here(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), changed(SPEC, "drop_ids", to=["absent"]))
    assert "unmatched-id" in {finding.code for finding in validate(path, tmp_path).findings}
    (tmp_path / "evals" / "street-v1" / "test.jsonl").unlink()
    assert "unmatched-id" not in {finding.code for finding in validate(path, tmp_path).findings}


def test_partitions_are_compared_only_when_asked_for(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), SPEC)
    (tmp_path / "evals" / "street-v1" / "test.jsonl").write_text("{}\n")
    (tmp_path / "evals" / "lamps-v1" / "calibration.jsonl").unlink()
    before = {finding.code for finding in validate(path, tmp_path).findings}
    assert not before & {"damaged-partition", "missing-partition"}
    after = {finding.code: finding for finding in validate(path, tmp_path, partitions=True).findings}
    assert "street-v1/test.jsonl" in after["damaged-partition"].message
    assert "kev.suite fetch" in after["missing-partition"].message


def test_damaged_files_are_named_and_no_crash(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), SPEC)
    (tmp_path / "evals" / "street-v1" / "manifest.json").write_text('{"files": 3}')
    (tmp_path / "experiments" / "round201" / "full.json").write_bytes(b"\xff\xfe[\x00]\x00")
    (tmp_path / "experiments" / "round201" / "delta.json").write_text('[{"base": "lamps/Base-2B", "lr": "big"}]')
    messages = {
        format_path(finding.where): finding.message for finding in validate(path, tmp_path).of(Severity.PROBLEM)
    }
    assert "files" in messages["reads.street.suite"]
    assert "UTF-16" in messages["studies.r201-full.plan"]
    assert "[0].lr" in messages["studies.r201-delta.plan"]


def test_a_spec_is_never_changed_by_validating_it(checkout: Path, tmp_path: Path) -> None:
    path = write_spec(tmp_path / "r201.json", SPEC)
    before = path.read_bytes(), sorted(str(name) for name in checkout.rglob("*"))
    validate(path, checkout, partitions=True)
    assert (path.read_bytes(), sorted(str(name) for name in checkout.rglob("*"))) == before
    assert json.loads(path.read_bytes()) == SPEC


def test_validation_knows_the_metrics_and_buckets_that_are_computed() -> None:
    from kev import metrics
    from kev.rounds.checks import panels

    assert set(panels.PAIRED_METRICS) == set(metrics.PAIRED_METRICS)
    assert set(panels.REPORT_METRICS) == set(metrics.REPORT_METRICS)
    assert (panels.LENGTH_METRICS, panels.LENGTH_EDGES) == (metrics.LENGTH_METRICS, metrics.LENGTH_EDGES)
    for edges in ((1024,), (8192, 16384), metrics.LENGTH_EDGES):
        assert panels.bucket_names(edges) == metrics.bucket_names(edges)


@pytest.mark.parametrize(("shipped", "is_warned"), [(1.0, True), (None, False), ("one", False)])
def test_a_parent_served_far_from_its_shipped_temperature_is_warned_about(
    tmp_path: Path, shipped: Any, is_warned: bool
) -> None:
    path = write_spec(write_checkout(tmp_path), changed(SPEC, "parents", "base", "pooled", to=False))
    trial = tmp_path / "runs" / "p2b" / "00-trial-0"
    (trial / "development").mkdir(parents=True)
    (trial / "checkpoint").mkdir()
    # Three of four right at 0.99 confidence: the rows want a temperature well above 1.
    rows = [
        {"id": f"r{number}", "group": f"g{number}", "question": "q", "source": "lanes", "task": "lanes", "type": "noul",
         "variant": "clean", "keys": ["false", "true"], "label": int(number != 0), "p": [0.01, 0.99],
         "logits": [0.0, 4.6], "inference_temperature": 1.0}
        for number in range(4)
    ]  # fmt: skip
    (trial / "development" / "rows.json").write_text(json.dumps(rows))
    (trial / "checkpoint" / "head.json").write_text(json.dumps({"temperature": shipped}))
    manifest = (tmp_path / "evals" / "lamps-v1" / "manifest.json").read_bytes()
    provenance = {"suite_sha256": hashlib.sha256(manifest).hexdigest(), "config": {}}
    (trial / "provenance.json").write_text(json.dumps(provenance))
    result = validate(path, tmp_path)
    assert result.ok, found(result)
    warned = [finding for finding in result.findings if finding.code == "shipped-temperature"]
    assert bool(warned) is is_warned
    if warned:
        assert "T = 1.000" in warned[0].message
        served = float(re.findall(r"served at T = ([0-9.]+)", warned[0].message)[0])
        (trial / "checkpoint" / "head.json").write_text(json.dumps({"temperature": served + 0.04}))
        assert "shipped-temperature" not in {finding.code for finding in validate(path, tmp_path).findings}


def test_a_plan_with_a_key_given_twice_is_refused_with_its_lines(tmp_path: Path) -> None:
    path = write_spec(write_checkout(tmp_path), SPEC)
    plan = tmp_path / "experiments" / "round201" / "delta.json"
    plan.write_text('[{"base": "lamps/Base-2B",\n"lr": 1e-5,\n"lr": 1e-3}]')
    (problem,) = validate(path, tmp_path).of(Severity.PROBLEM)
    assert format_path(problem.where) == "studies.r201-delta.plan"
    assert "[0].lr: given twice, on lines 2 and 3" in problem.message


def test_a_file_named_after_another_round_is_warned_about(checkout: Path, tmp_path: Path) -> None:
    result = validate(write_spec(tmp_path / "r202.json", SPEC), checkout)
    assert ("other-round", "round") in found(result, Severity.WARNING)
    assert result.ok
