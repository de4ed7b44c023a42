"""Looking across studies: nothing that a result lacks or gets wrong hides another, counts as a number, or crashes."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev import autoresearch, files
from kev.budget import hourly_rate, recorded
from kev.errors import DamagedFile
from kev.leaderboard import estimate_usd, markdown, read_leaderboard, write_leaderboard
from kev.recipes import knobs, recipe_key
from kev.release_check import release_check
from kev.trials import Trial, find_trials, read_trial

BLOCK = {"n": 8, "acc": 0.75, "nll": 0.7, "ece": 0.06, "brier": 0.35, "confident_error_rate": 0.02}
SHA = "ab" * 32


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 10, 4, 3, 2, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def result(accuracy: Any = 0.6, **changes: Any) -> dict[str, Any]:
    return {
        "clean": BLOCK,
        "transfer": {"clean": {**BLOCK, "acc": accuracy}, "suite_sha256": SHA, "tasks": {"t": {"acc": 0.5}}},
        "provenance": {"config": {"base": "org/tiny", "seed": 3, "lr": 2e-5}, "git_commit": "0123456789abcdef"},
        "gates": {"passed": True, "checks": {"complete_coverage": True}},
        "wall_seconds": 1800.0,
        **changes,
    }


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    def write(study: str, trial: str, value: Any) -> Path:
        directory = tmp_path / "runs" / study / trial
        directory.mkdir(parents=True)
        (directory / "result.json").write_text(value if isinstance(value, str) else json.dumps(value))
        return directory

    return write


def test_trials_are_ranked_by_transfer_accuracy_and_ties_by_name(tmp_path: Path, put: Callable[..., Path]) -> None:
    for study, accuracy in (("s-b", 0.6), ("s-a", 0.6), ("s-c", 0.9), ("s-d", 0)):
        put(study, "00-trial-0", result(accuracy))
    board = read_leaderboard(tmp_path / "runs")
    assert [entry.row["study"] for entry in board.ranked] == ["s-c", "s-a", "s-b", "s-d"]


@pytest.mark.parametrize(
    ("accuracy", "reason"),
    [(None, "null"), (math.nan, "NaN"), (math.inf, "infinite"), ("0.99", "text"), (True, "bool"), ([1], "list"),
     (61.2, "outside 0 to 1"), (-0.1, "outside"), (10**400, "int")],
)  # fmt: skip
def test_what_is_no_accuracy_is_listed_apart_with_its_reason_and_written_as_null(
    tmp_path: Path, put: Callable[..., Path], accuracy: Any, reason: str
) -> None:
    put("good", "00-trial-0", result(0.1))
    put("bad", "00-trial-0", result(accuracy))
    board = read_leaderboard(tmp_path / "runs")
    assert [entry.id for entry in board.ranked] == ["good/00-trial-0"]
    [apart] = board.apart
    assert reason in str(apart.apart)
    lines, page = write_leaderboard(tmp_path / "runs", board, StillClock())
    rows = files.read_json_lines(lines)
    assert [row["study"] for row in rows] == ["good", "bad"]
    assert "NaN" not in lines.read_text() and "Infinity" not in lines.read_text()
    assert "bad/00-trial-0: transfer accuracy is" in page.read_text()


@pytest.mark.parametrize("missing", ["transfer", "clean", "provenance", "gates", "wall_seconds"])
def test_a_result_without_a_block_is_shown_without_its_figures(
    tmp_path: Path, put: Callable[..., Path], missing: str
) -> None:
    value = result()
    del value[missing]
    put("s", "00-trial-0", value)
    [entry] = read_leaderboard(tmp_path / "runs").entries
    assert "–" in markdown(read_leaderboard(tmp_path / "runs"), "now")
    assert (entry.apart is not None) == (missing == "transfer")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        '{"clean": {"acc": 0.9, "acc": 0.1}}',
        "[]",
        "7",
        '"x"',
        "[" * 9999,
        "\x00\x00",
        '{"provenance": {"config": ' + '{"a":' * 700 + "1" + "}" * 702,
    ],
)
def test_a_damaged_result_is_named_and_the_rest_is_shown(
    tmp_path: Path, put: Callable[..., Path], content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put("good", "00-trial-0", result())
    put("bad", "00-trial-0", content)
    assert autoresearch.main(["leaderboard", "--root", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "1 trial ->" in printed.out
    assert printed.err.count("\n") == 1 and "bad/00-trial-0/result.json" in printed.err
    assert "bad/00-trial-0/result.json" in (tmp_path / "runs" / "leaderboard.md").read_text()


def test_a_directory_that_may_not_be_listed_is_named(
    tmp_path: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("good", "00-trial-0", result())
    put("locked", "00-trial-0", result())
    listed = Path.iterdir

    def refuse(path: Path) -> Any:
        # The tests may run as a user whom no permission stops.
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    board = read_leaderboard(tmp_path / "runs")
    assert [entry.row["study"] for entry in board.entries] == ["good"]
    assert ["locked: may not be listed" in str(error) for error in board.damaged] == [True]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("clean", "provenance", "gates", "wall_seconds"), JSON)), JSON)
def test_no_shape_of_a_result_crashes_the_row_or_the_verdict(blocks: dict[str, Any], config: Any) -> None:
    trial = Trial("s", "t", Path("s/t"), {**blocks, "transfer": {"clean": config}, "more": blocks})
    assert trial.figure("clean", "acc").value is None or trial.figure("clean", "acc").reason is None
    knobs(trial.config)
    recipe_key(trial.config)
    estimate_usd(trial, None)


def test_an_accuracy_written_by_an_older_writer_as_nan_keeps_the_rest_of_its_result(put: Callable[..., Path]) -> None:
    directory = put("s", "00-trial-0", json.dumps(result(math.nan)))
    trial = read_trial(directory)
    assert trial.figure("transfer", "clean", "acc").reason == "NaN"
    assert trial.figure("transfer", "clean", "brier").value == BLOCK["brier"]


def test_each_card_is_priced_as_itself_and_an_unknown_one_not_at_all() -> None:
    def cost(gpu: str | None, admitted: str | None = None, **config: Any) -> float | None:
        provenance = {"device": "cuda", "gpu": gpu, "config": config}
        usd = estimate_usd(Trial("s", "t", Path(), {"wall_seconds": 3600, "provenance": provenance}), admitted)
        return None if usd is None else float(usd)

    assert cost("NVIDIA H200") == float(recorded(hourly_rate("H200")))
    assert cost("NVIDIA H100 80GB HBM3") == float(recorded(hourly_rate("H100")))
    assert cost("NVIDIA H200", "H200:8", full_ft=1) == float(recorded(hourly_rate("H200:8", True)))
    assert cost("NVIDIA A100") is None
    assert cost(None) is None
    assert cost("NVIDIA H200", "Z9") is None


@pytest.mark.parametrize("content", ["", "null", '{"name": "a", "calls": {}, "gpu": "T4", "gpu": "H200:8"}'])
def test_a_damaged_record_of_a_study_is_named_and_prices_none_of_its_trials(
    tmp_path: Path, put: Callable[..., Path], content: str
) -> None:
    finished = result() | {"wall_seconds": 3600, "provenance": {"device": "cuda", "gpu": "NVIDIA H200", "config": {}}}
    put("a", "00-trial-0", finished)
    put("b", "00-trial-0", finished)
    (tmp_path / "runs" / "a.spawn.json").write_text(content)
    board = read_leaderboard(tmp_path / "runs")
    assert {entry.row["study"]: entry.row["est_usd"] for entry in board.entries} == {
        "a": None,
        "b": float(recorded(hourly_rate("H200"))),
    }
    (fault,) = board.damaged
    assert "a.spawn.json" in str(fault)


def test_a_trial_without_a_card_costs_no_invented_money() -> None:
    assert estimate_usd(Trial("s", "t", Path(), {"wall_seconds": 9, "provenance": {"device": "cpu"}}), "H200") is None


def test_names_with_control_characters_and_bars_stay_one_cell_of_one_line(
    tmp_path: Path, put: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    put("s\x1b[31m|x", "00-trial-0", result(None))
    assert autoresearch.main(["leaderboard", "--root", str(tmp_path)]) == 0
    page = (tmp_path / "runs" / "leaderboard.md").read_text()
    assert "\x1b" not in page + "".join(capsys.readouterr())
    assert "\\x1b[31m\\|x" in page


def test_recipes_that_share_a_base_have_verdicts_of_their_own(tmp_path: Path, put: Callable[..., Path]) -> None:
    def config(seed: int, **settings: Any) -> dict[str, Any]:
        return {"config": {"base": "org/tiny", "seed": seed, **settings}}

    put("s", "00-trial-0", result(provenance=config(0)))
    put("s", "01-trial-1", result(provenance=config(1)))
    put("s", "02-trial-2", result(provenance=config(0, lr=1e-5)))
    put("s", "03-trial-3", result(provenance=config(1, lr=1e-5), gates={"passed": False, "checks": {"pairs": False}}))
    verdicts, _ = release_check(tmp_path / "runs", "s")
    assert [verdict.candidate for verdict in verdicts] == [True, False]
    assert [verdict.trials for verdict in verdicts] == [["00-trial-0", "01-trial-1"], ["02-trial-2", "03-trial-3"]]
    assert verdicts[1].reasons == ["03-trial-3 fails pairs"]
    assert len({verdict.recipe for verdict in verdicts}) == 2


def test_a_spelled_out_default_and_other_snapshots_are_the_same_recipe() -> None:
    assert recipe_key({"base": "b", "seed": 1}) == recipe_key(
        {"seed": 2, "lora": 16, "base": "b", "save_every_steps": 5}
    )
    assert recipe_key({"base": "b"}) != recipe_key({"base": "b", "accum": 4})


@pytest.mark.parametrize(
    "change", [{"gates": None}, {"gates": {"passed": True}}, {"provenance": {}}, {"transfer": None}]
)
def test_a_trial_that_lacks_what_a_verdict_needs_is_no_candidate_and_says_why(
    tmp_path: Path, put: Callable[..., Path], change: dict[str, Any]
) -> None:
    put("s", "00-trial-0", result(**change))
    put("s", "01-trial-1", result(**change))
    verdicts, _ = release_check(tmp_path / "runs", "s")
    for verdict in verdicts:
        assert verdict.candidate == ("transfer" in change)
        assert bool(verdict.reasons) != verdict.candidate


def rows(right: list[int]) -> list[dict[str, Any]]:
    return [
        {"id": f"r{n}", "group": f"g{n // 2}", "question": "q", "source": "s", "task": "t", "type": "noul",
         "variant": "clean", "keys": ["false", "true"], "label": 1, "p": [1 - p, p], "control_id": None,
         "pair_id": None, "sibling": None, "parent": None}
        for n, p in enumerate(0.8 if answer else 0.3 for answer in right)
    ]  # fmt: skip


def test_a_comparison_says_its_statistic_and_a_difference_of_other_suites_is_missing(
    tmp_path: Path, put: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reference = put("p", "00-trial-0", result(0.5))
    better = put("s", "00-trial-0", result(0.75))
    other = put("s", "01-trial-1", result(0.9, transfer={"clean": BLOCK, "suite_sha256": "cd" * 32}))
    for directory, right in ((reference, [0, 1] * 4), (better, [1, 1, 1, 1, 1, 1, 0, 0]), (other, [1] * 8)):
        (directory / "transfer").mkdir()
        (directory / "transfer" / "rows.json").write_text(json.dumps(rows(right)))
    arguments = ["compare", "--root", str(tmp_path), "--studies", "s", "--reference", "runs/p/00-trial-0"]
    assert autoresearch.main(arguments) == 0
    text = capsys.readouterr().out
    assert "micro average" in text and "2,000 resamples" in text
    assert autoresearch.main([*arguments, "--json", "--average", "macro", "--samples", "50"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["statistic"] == {"metric": "acc", "rows": "transfer", "average": "macro", "samples": 50, "seed": 0}
    first, second = found["trials"]
    assert first["delta"] == pytest.approx(0.25)
    assert first["ci95"][0] <= 0.25 <= first["ci95"][1]
    assert (second["delta"], second["ci95"]) == (None, None)
    assert "suite" in second["missing"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "--studies", "s", "--reference", "runs/none/00"],
        ["compare", "--studies", "../s", "--reference", "runs/none/00"],
        ["compare", "--studies", "s", "--reference", "runs/none/00", "--samples", "0"],
        ["release-check", "--study", "none"],
        ["release-check", "--study", "a/b"],
    ],
)
def test_what_is_not_there_is_one_line_on_stderr(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").mkdir()
    assert autoresearch.main([*arguments, "--root", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_result_in_utf16_is_named_and_not_read_unasked(put: Callable[..., Path]) -> None:
    directory = put("a", "00-x", json.dumps(result()))
    path = directory / "result.json"
    path.write_bytes(path.read_text().encode("utf-16"))
    with pytest.raises(DamagedFile, match="UTF-16"):
        read_trial(directory)


def test_a_study_on_a_volume_that_is_not_mounted_is_a_fault_and_not_nothing(put: Callable[..., Path]) -> None:
    runs = put("a", "00-x", json.dumps(result())).parents[1]
    (runs / "b").symlink_to(runs.parent / "unmounted")
    trials, faults = find_trials(runs)
    assert [trial.id for trial in trials] == ["a/00-x"]
    assert [str(fault).startswith(f"{runs / 'b'}: a link to nothing") for fault in faults] == [True]
