"""Plans: every key has its default and its range, and combinations that cannot be trained are refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.errors import DamagedFile
from kev.records.plan import TrialConfig, is_full_weight, plan_problems, read_plan, snapshot_steps

REVISION = "0123456789abcdef0123456789abcdef01234567"
LORA = {"base": "lamps/Base-2B", "base_revision": REVISION}
FULL = {**LORA, "full_ft": 1, "weights_dtype": "bf16"}


def wrong_keys(*trials: dict[str, Any], pins: dict[str, str] | None = None) -> list[Any]:
    return [problem.where[-1] for problem in plan_problems(list(trials), {} if pins is None else pins)]


def test_a_plain_trial_is_good_and_so_is_one_with_every_default_written_out() -> None:
    defaults = TrialConfig.model_validate(LORA).model_dump(exclude_none=True)
    assert wrong_keys(LORA) == []
    assert wrong_keys({**defaults, **LORA}) == []


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("epochs", [0, 6, 1.0, "1", True]),
        ("seed", [-1, 10_001]),
        ("lr", [9e-7, 2e-3, "2e-5"]),
        ("lora", [0, 65]),
        ("accum", [0, 257]),
        ("batch", [0, 65]),
        ("perm_kl", [-0.1, 2.1]),
        ("perm_frac", [1.1]),
        ("p_none", [0.41, -0.1]),
        ("p_none_pair", [1.01]),
        ("synthetic_repeat", [0, 7]),
        ("public_frac", [0.04, 1.1]),
        ("head_lr", [0.02]),
        ("weight_decay", [0.31]),
        ("label_smoothing", [0.21]),
        ("brier_w", [2.1]),
        ("focal_gamma", [4.1]),
        ("dtype", ["fp16", 32]),
        ("checkpointing", [2, True]),
        ("head_dim", [300]),
        ("lora_targets", ["mlp"]),
        ("row_budget", [65_537]),
        ("replay", [20_001]),
    ],
)
def test_a_value_out_of_its_range_is_named(key: str, values: list[Any]) -> None:
    for value in values:
        extra = {"data": "evals/a/train.jsonl"} if key == "replay" else {}
        assert key in wrong_keys({**LORA, **extra, key: value}), f"{key}={value!r} went through"


@pytest.mark.parametrize(
    ("trial", "key"),
    [
        ({**LORA, "learning_rate": 1e-5}, "learning_rate"),
        ({"base_revision": REVISION}, "base"),
        ({**LORA, "label_smoothing": 0.1, "focal_gamma": 1.0}, "focal_gamma"),
        ({**LORA, "p_none": 0.4, "p_none_distract": 0.4, "p_distract": 0.4}, "p_none"),
        ({**LORA, "anchor_w": 1.0}, "anchor"),
        ({**LORA, "anchor": "a.json"}, "anchor"),
        ({**LORA, "replay": 10}, "replay"),
        ({**LORA, "data": "/tmp/train.jsonl"}, "data"),
        ({**LORA, "none_pair_max_state": 10}, "none_pair_max_state"),
        ({**LORA, "pass_tokens_max": 10}, "pass_tokens_max"),
        ({**LORA, "pass_tokens_max": 10, "length_sort": 1, "row_budget": 5}, "pass_tokens_max"),
        ({**LORA, "save_every_steps": 5}, "save_every_steps"),
        ({**LORA, "snapshot_fractions": "0.5"}, "snapshot_fractions"),
        ({**LORA, "full_ft": 1}, "weights_dtype"),
        ({**FULL, "snapshot_fractions": "0.5,1.5"}, "snapshot_fractions"),
        ({**FULL, "snapshot_fractions": "half"}, "snapshot_fractions"),
        ({**FULL, "snapshot_every_steps": 10}, "snapshot_every_steps"),
        ({**FULL, "snapshot_every_steps": 10, "max_steps": 200}, "snapshot_every_steps"),
        ({**FULL, "snapshot_hub_repo": "nobody"}, "snapshot_hub_repo"),
        ({**LORA, "init_from": "somewhere"}, "init_from"),
        ({**LORA, "base_revision": "main"}, "base_revision"),
    ],
)
def test_what_cannot_be_combined_is_refused_at_the_key_to_change(trial: dict[str, Any], key: str) -> None:
    assert wrong_keys(trial) == [key]


def test_a_revision_is_needed_unless_the_suite_pins_one_and_must_be_that_one() -> None:
    pins = {"lamps/Base-2B": REVISION}
    assert wrong_keys({"base": "lamps/Base-2B"}, pins=pins) == []
    assert wrong_keys({"base": "lamps/Base-2B"}) == ["base_revision"]
    assert wrong_keys({**LORA, "base_revision": "f" * 40}, pins=pins) == ["base_revision"]


def test_eight_snapshots_are_kept_and_nine_are_not() -> None:
    fractions = [f"0.{digit}" for digit in range(1, 10)]
    assert wrong_keys({**FULL, "snapshot_fractions": ",".join(fractions[:8])}) == []
    assert wrong_keys({**FULL, "snapshot_fractions": ",".join(fractions)}) == ["snapshot_fractions"]
    assert wrong_keys({**FULL, "snapshot_fractions": "none", "snapshot_every_steps": 10, "max_steps": 90}) == []


@pytest.mark.parametrize(("total", "steps"), [(1140, [285, 570, 855]), (454, [114, 227, 341]), (1, []), (2, [1])])
def test_snapshots_fall_on_the_registered_steps(total: int, steps: list[int]) -> None:
    assert snapshot_steps(TrialConfig.model_validate(FULL), total) == steps


@given(st.integers(1, 500), st.integers(1, 60))
def test_snapshots_of_every_n_steps_lie_inside_the_run(total: int, every: int) -> None:
    trial = TrialConfig.model_validate({**FULL, "snapshot_fractions": "none", "snapshot_every_steps": every})
    steps = snapshot_steps(trial, total)
    assert steps == [step for step in range(1, total) if step % every == 0]


def test_one_full_weight_trial_makes_the_study_a_full_weight_one() -> None:
    assert is_full_weight([LORA, FULL])
    assert not is_full_weight([LORA])


@pytest.mark.parametrize("value", [{}, [], [LORA] * 9, [3], None, "x"])
def test_what_is_no_list_of_one_to_eight_trials_is_one_finding(value: Any) -> None:
    assert len(plan_problems(value)) == 1


def test_reading_a_plan_names_the_file_the_trial_and_the_key(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b'\xef\xbb\xbf[\r\n {"base": "lamps/Base-2B"}\r\n]')
    assert [trial.base for trial in read_plan(path)] == ["lamps/Base-2B"]
    path.write_text('[{"base": "a"}, {"base": "b", "epochs": 9}]')
    with pytest.raises(DamagedFile, match=r"plan.json: \[1\].epochs: .*5"):
        read_plan(path)
