"""Shipping a temperature: fitted on rows that are shown to be held out, refused in order, recorded in full."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from kev.baseline import read, read_records
from kev.calibrate import FitRows, Request, calibrate, read_rows
from kev.checkpoint import HEAD, Head, read_head, read_twin, write_head
from kev.errors import DamagedFile, KevError, NotFound, Refused, UsageError
from kev.linear import fit
from kev.metrics import fit_temperature
from kev.suite import open_suite

REPOSITORY = Path(__file__).parents[2]
EVALS = REPOSITORY / "evals"


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of a baseline, on held-out and on trained data."""
    runs = tmp_path_factory.mktemp("runs")
    model = fit(
        record for name in ("decision-v1", "skills-v1") for record in read_records(open_suite(EVALS / name), "train")
    )
    for name in ("heldout-stock-v1", "heldout-counts-v1", "decision-v1"):
        read(model, open_suite(EVALS / name), "calibration", runs / name)
    read(model, open_suite(EVALS / "transfer-v1"), "development", runs / "transfer-v1")
    return runs


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    suite = open_suite(EVALS / "decision-v1")
    values = {
        "base": "org/tiny",
        "head": {"q.weight": torch.ones(2, 2)},
        "suite_sha256": suite.sha256,
        "args": {"suite": "evals/decision-v1", "seed": 3},
        "origin": {"kept": True},
    }
    write_head(tmp_path / "checkpoint", Head(values))
    return tmp_path / "checkpoint"


def asked(checkpoint: Path, *rows: Path | FitRows, **changes: Any) -> Request:
    fit = tuple(entry if isinstance(entry, FitRows) else FitRows(entry) for entry in rows)
    return Request(checkpoint, fit, root=REPOSITORY, **changes)


def quiet(_: str) -> None:
    """For calibrations whose lines are not looked at."""


def rows_of(reads: Path, name: str) -> Path:
    return reads / name / "rows.json"


def test_the_fitted_temperature_is_the_rounds_fit_of_the_pooled_rows_and_is_recorded(
    checkpoint: Path, reads: Path
) -> None:
    lines: list[str] = []
    first, second = rows_of(reads, "heldout-stock-v1"), rows_of(reads, "heldout-counts-v1")
    head = calibrate(asked(checkpoint, first, second, transfer=rows_of(reads, "transfer-v1")), lines.append)
    alone = fit_temperature(read_rows(second)).temperature
    record = head.values["temperature_fit"]
    assert read_head(checkpoint).temperature == head.temperature != 1.0
    assert calibrate(asked(checkpoint, second), lines.append).temperature == alone
    assert record["n"] == sum(entry["questions"] for entry in record["fit_rows"])
    assert [(entry["suite"], entry["split"]) for entry in record["fit_rows"]] == [
        ("evals/heldout-stock-v1", "calibration"),
        ("evals/heldout-counts-v1", "calibration"),
    ]
    assert record["training_suites"] == ["evals/decision-v1"]
    assert record["cross_validation"]["folds"] == 5
    assert "in_distribution" not in record
    assert any(line.startswith("fit rows, ") for line in lines)
    assert any(line.startswith("transfer, ") for line in lines)


def test_everything_else_in_the_head_stays_and_the_twin_says_the_same(checkpoint: Path, reads: Path) -> None:
    before = dict(read_head(checkpoint).values)
    calibrate(asked(checkpoint, rows_of(reads, "heldout-stock-v1")), quiet)
    after = dict(read_head(checkpoint).values)
    assert torch.equal(after["head"].pop("q.weight"), before["head"].pop("q.weight"))
    twin = read_twin(checkpoint)
    assert twin["temperature"] == after.pop("temperature")
    assert twin["temperature_fit"] == after.pop("temperature_fit")
    assert after == before


def test_rows_of_the_training_suite_are_refused_unless_that_is_allowed_and_then_recorded(
    checkpoint: Path, reads: Path
) -> None:
    path = rows_of(reads, "decision-v1")
    before = (checkpoint / HEAD).read_bytes()
    with pytest.raises(Refused, match="evals/decision-v1 was trained on") as raised:
        calibrate(asked(checkpoint, path), quiet)
    assert "\n" not in str(raised.value)
    assert (checkpoint / HEAD).read_bytes() == before
    lines: list[str] = []
    head = calibrate(asked(checkpoint, path, allow_in_distribution=True), lines.append)
    assert [line for line in lines if line.startswith("!!! not shown to be held out, allowed: ")]
    assert head.values["temperature_fit"]["in_distribution"]["allowed"] is True
    assert head.values["temperature_fit"]["in_distribution"]["problems"]


def test_rows_that_nothing_places_and_a_training_that_nobody_tells_are_refused(
    checkpoint: Path, reads: Path, tmp_path: Path
) -> None:
    stray = tmp_path / "stray" / "rows.json"
    stray.parent.mkdir()
    shutil.copy(rows_of(reads, "heldout-stock-v1"), stray)
    with pytest.raises(Refused, match="cannot be placed"):
        calibrate(asked(checkpoint, stray), quiet)
    untold = tmp_path / "untold" / "checkpoint"
    write_head(untold, Head({"base": "org/tiny"}))
    with pytest.raises(Refused, match="what the checkpoint was trained on is not known"):
        calibrate(asked(untold, rows_of(reads, "heldout-stock-v1")), quiet)
    gone = tmp_path / "gone" / "checkpoint"
    write_head(gone, Head({"base": "org/tiny", "suite_sha256": "0" * 64, "args": {"suite": "evals/decision-v1"}}))
    with pytest.raises(Refused, match="is not here"):
        calibrate(asked(gone, rows_of(reads, "heldout-stock-v1")), quiet)


def test_the_same_texts_under_another_suite_and_source_are_refused(
    checkpoint: Path, reads: Path, tmp_path: Path
) -> None:
    root = tmp_path / "checkout"
    shutil.copytree(EVALS, root / "evals")
    renamed = root / "evals" / "renamed-v1"
    shutil.copytree(EVALS / "decision-v1", renamed)
    text = (renamed / "manifest.json").read_text()
    for source in ("policies", "tickets", "levels", "dates"):
        text = text.replace(f'"{source}"', f'"other_{source}"')
    manifest = json.loads(text)
    manifest |= {"trainable_sources": [], "eval_only_sources": manifest["trainable_sources"], "eval_only": True}
    (renamed / "manifest.json").write_text(json.dumps(manifest))
    out = tmp_path / "read"
    read(fit([]), open_suite(renamed), "calibration", out)
    request = Request(checkpoint, (FitRows(out / "rows.json"),), root=root)
    with pytest.raises(Refused, match="have the text of one in evals/decision-v1 calibration"):
        calibrate(request, quiet)


def test_an_unknown_source_is_refused_before_anything_else_is_looked_at(tmp_path: Path, reads: Path) -> None:
    path = rows_of(reads, "decision-v1")
    with pytest.raises(Refused, match=r"has no source 'datse'; it has .*dates"):
        calibrate(asked(tmp_path / "no-checkpoint", FitRows(path, ("datse",))), quiet)
    with pytest.raises(NotFound):
        calibrate(asked(tmp_path / "no-checkpoint", FitRows(path, ("dates",))), quiet)


def test_only_the_sources_named_and_no_excluded_record_are_fitted_on(checkpoint: Path, reads: Path) -> None:
    path = rows_of(reads, "heldout-stock-v1")
    rows = json.loads(path.read_text())
    head = calibrate(asked(checkpoint, FitRows(path, ("stock",))), quiet)
    assert head.values["temperature_fit"]["n"] == sum(row["source"] == "stock" for row in rows)
    excluded = reads / "excluded.json"
    excluded.write_text(json.dumps(rows[:30]))
    head = calibrate(asked(checkpoint, path, exclude_rows=(excluded,)), quiet)
    assert head.values["temperature_fit"]["n"] == len(rows) - 30


def test_a_file_of_excluded_records_that_excludes_none_is_named(checkpoint: Path, reads: Path) -> None:
    path = reads / "heldout-stock-v1" / "rows.json"
    rows = json.loads(path.read_text())
    other = reads / "other.json"
    other.write_text(json.dumps([{**row, "id": f"{row['id']} "} for row in rows[:3]]))
    said: list[str] = []
    head = calibrate(asked(checkpoint, path, exclude_rows=(other,)), said.append)
    assert head.values["temperature_fit"]["n"] == len(rows)
    (line,) = [line for line in said if str(other) in line]
    assert "none of its" in line and "leaves nothing out" in line and "look alike and are two records" in line


def test_a_fit_at_the_edge_of_the_grid_is_marked(checkpoint: Path, reads: Path, tmp_path: Path) -> None:
    out = tmp_path / "right"
    shutil.copytree(reads / "heldout-stock-v1", out)
    rows = json.loads((out / "rows.json").read_text())
    for row in rows:
        row["logits"] = [3.0 if place == row["label"] else 0.0 for place in range(len(row["keys"]))]
        row["p"] = torch.tensor(row["logits"], dtype=torch.float64).softmax(0).tolist()
    (out / "rows.json").write_text(json.dumps(rows))
    lines: list[str] = []
    head = calibrate(asked(checkpoint, out / "rows.json"), lines.append)
    assert head.temperature == pytest.approx(0.25)
    assert "edge" in head.values["temperature_fit"]["note"]
    assert any(line.startswith("!!! T = 0.25") for line in lines)


@pytest.mark.parametrize("part", ["calibration", "development", "transfer"])
def test_rows_of_a_trial_are_placed_by_its_own_records(
    checkpoint: Path, reads: Path, tmp_path: Path, part: str
) -> None:
    trial = tmp_path / "study" / "00-trial-0"
    sha256 = open_suite(EVALS / "heldout-stock-v1").sha256
    (trial / part).mkdir(parents=True)
    shutil.copy(rows_of(reads, "heldout-stock-v1"), trial / part / "rows.json")
    (trial / part / "report.json").write_text("{}")
    record = {"transfer": {"suite_sha256": sha256}} if part == "transfer" else {"suite_sha256": sha256}
    (trial / ("result.json" if part == "transfer" else "provenance.json")).write_text(json.dumps(record))
    head = calibrate(asked(checkpoint, trial / part / "rows.json"), quiet)
    [fit] = head.values["temperature_fit"]["fit_rows"]
    assert (fit["suite"], fit["split"]) == ("evals/heldout-stock-v1", "development" if part == "transfer" else part)


def test_a_checkpoint_that_tells_nothing_is_known_by_the_provenance_beside_it(reads: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "00-trial-0" / "checkpoint"
    write_head(checkpoint, Head({"base": "org/tiny"}))
    provenance = {"suite_sha256": open_suite(EVALS / "decision-v1").sha256, "config": {}}
    (checkpoint.parent / "provenance.json").write_text(json.dumps(provenance))
    assert calibrate(asked(checkpoint, rows_of(reads, "heldout-stock-v1")), quiet).temperature != 1.0


@pytest.mark.parametrize(("text", "path", "sources"), [("a/rows.json", "a/rows.json", None),
                                                       ("a/rows.json:x,y", "a/rows.json", ("x", "y"))])  # fmt: skip
def test_rows_are_named_with_or_without_sources(text: str, path: str, sources: tuple[str, ...] | None) -> None:
    assert FitRows.parse(text) == FitRows(Path(path), sources)


def test_a_colon_in_the_name_of_a_file_belongs_to_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.touch()
    assert FitRows.parse(str(path)) == FitRows(path)
    with pytest.raises(UsageError, match="names no source"):
        FitRows.parse("rows.json:")


@pytest.mark.parametrize("content", ["", "{}", "[{}]", "[", '[{"id": 7}]'])
def test_damaged_rows_are_one_line_and_change_nothing(checkpoint: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content)
    before = (checkpoint / HEAD).read_bytes()
    with pytest.raises(KevError) as raised:
        calibrate(asked(checkpoint, path, allow_in_distribution=True), quiet)
    assert "\n" not in str(raised.value)
    assert (checkpoint / HEAD).read_bytes() == before


def test_a_hostile_head_is_refused_before_anything_is_fitted(tmp_path: Path, reads: Path) -> None:
    (tmp_path / HEAD).write_bytes(b"cos\nmkdir\n(V/nowhere\ntR.")
    with pytest.raises(DamagedFile):
        calibrate(asked(tmp_path, rows_of(reads, "heldout-stock-v1")), quiet)


def script(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/calibrate_checkpoint.py", *map(str, arguments)]
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, env=environment)


def test_the_command_sets_a_temperature_by_hand_only_with_a_reason(checkpoint: Path, reads: Path) -> None:
    given = ("--run", checkpoint, "--rows", rows_of(reads, "decision-v1"))
    for extra in ([], ["--reason", "  "]):
        refused = script(*given, "--temperature", "1.3", *extra)
        assert (refused.returncode, "needs a --reason" in refused.stderr) == (2, True)
    assert script(*given, "--temperature", "0", "--reason", "r").returncode == 2
    done = script(*given, "--temperature", "1.3", "--reason", "agreed by hand")
    assert (done.returncode, done.stderr) == (0, "")
    head = read_head(checkpoint)
    assert head.temperature == 1.3
    assert head.values["temperature_fit"] == {"method": "manual", "reason": "agreed by hand"}


def test_the_command_prints_a_refusal_as_one_line(checkpoint: Path, reads: Path) -> None:
    refused = script("--run", checkpoint, "--rows", rows_of(reads, "decision-v1"))
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1


def test_torch_is_loaded_only_where_a_head_is_read() -> None:
    code = "import sys, kev.calibrate, kev.checkpoint; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == "False\n"
