"""results.jsonl of a study that comes home trial by trial: ranked, whole, and brought up without losing a line."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_lab import RoundLab
from watched_night import Night

from kev.records.study_results import TrialResult
from kev.trial.ranking import aggregate, rank_again


def put(study: Path, index: int, objective: float | None, **more: Any) -> None:
    place = study / f"{index:02d}-trial-{index}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "result.json").write_text(json.dumps({"objective": objective, "clean": {"acc": 0.5}, **more}))


def lines_of(study: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (study / "results.jsonl").read_text().splitlines()]


def test_each_pull_brings_it_up_and_the_same_again_writes_nothing(tmp_path: Path) -> None:
    study = tmp_path / "night"
    put(study, 0, -1.0)
    rank_again(study)
    put(study, 1, -0.5)
    rank_again(study)
    assert [(line["id"], line["status"]) for line in lines_of(study)] == [
        ("01-trial-1", "complete"), ("00-trial-0", "complete"),
    ]  # fmt: skip
    before = (study / "results.jsonl").stat()
    rank_again(study)
    after = (study / "results.jsonl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_every_line_has_the_keys_of_the_public_format(tmp_path: Path) -> None:
    study = tmp_path / "night"
    put(study, 0, -1.0, provenance={"config": {"base": "a/b"}}, gates={"passed": True, "checks": {}, "policy": "p"})
    rank_again(study)
    (line,) = lines_of(study)
    assert list(line) == ["id", "status", "path", "objective", "clean", "transfer_clean", "transfer_paired_flip",
                          "gates", "promotable", "paired_ci95", "config", "legacy"]  # fmt: skip
    assert TrialResult.model_validate(line).objective == -1.0


@pytest.mark.parametrize("rank", [aggregate, rank_again])
def test_a_figure_that_is_no_number_is_written_as_null_and_hides_no_trial(
    tmp_path: Path, rank: Callable[[Path], object]
) -> None:
    study = tmp_path / "night"
    put(study, 0, math.nan)
    put(study, 1, -1.0, provenance={"config": {"lr": math.inf}}, transfer={"clean": {"acc": math.nan}})
    put(study, 2, -2.0, gates={"checks": {"one": math.nan, "two": 10**400, "three": True}})
    rank(study)
    lines = lines_of(study)
    assert [(line["id"], line["objective"]) for line in lines] == [
        ("01-trial-1", -1.0), ("02-trial-2", -2.0), ("00-trial-0", None),
    ]  # fmt: skip
    assert (lines[0]["config"], lines[0]["transfer_clean"]) == ({"lr": None}, {"acc": None})
    assert lines[1]["gates"]["checks"] == {"one": None, "two": None, "three": True}
    assert b"NaN" not in (study / "results.jsonl").read_bytes()


def test_what_it_holds_of_trials_that_are_not_here_stays(tmp_path: Path) -> None:
    study = tmp_path / "night"
    put(study, 0, -1.0)
    other = {"id": "07-trial-7", "status": "failed", "error": "no such base"}
    old = {"id": "00-trial-0", "status": "failed", "error": "before it was continued"}
    (study / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (other, old)) + '{"id": "08')
    rank_again(study)
    assert [(line["id"], line["status"]) for line in lines_of(study)] == [
        ("00-trial-0", "complete"), ("07-trial-7", "failed"),
    ]  # fmt: skip


@given(st.lists(st.one_of(st.none(), st.floats(-5, 5)), min_size=1, max_size=5), st.randoms())
def test_in_whatever_order_trials_come_home_the_ranking_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, objectives: list[float | None], draw: Any
) -> None:
    order = list(range(len(objectives)))
    found = []
    for _ in range(2):
        study = tmp_path_factory.mktemp("runs") / "night"
        draw.shuffle(order)
        for index in order:
            put(study, index, objectives[index])
            rank_again(study)
        found.append([line["id"] for line in lines_of(study)])
    assert found[0] == found[1]


async def test_a_watch_leaves_the_results_of_every_study_beside_what_it_pulled(round_lab: RoundLab) -> None:
    night = Night(round_lab)
    await night.launch()
    assert await night.watch()
    for study in ("r201-full", "r201-delta"):
        assert [line["id"] for line in lines_of(round_lab.runs / study)] == ["00-trial-0"]
