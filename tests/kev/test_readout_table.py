"""The tables that readout and confirm print."""

import io
from typing import Any

from rich.console import Console
from small_round import edited, parse_spec

from kev.rounds.table import format_figure, print_readout, print_verdict

PANELS: dict[str, Any] = {
    "hard": {"n": 40, "acc": {"candidate": 0.75, "parent": 0.5, "delta": 0.25, "ci95": [0.125, 0.375]}},
    "both": {"n": 80, "brier": {"candidate": 0.3, "parent": 0.2, "delta": 0.1, "ci95": [0.04, 0.16]}},
}


def comparison(**changes: Any) -> dict[str, Any]:
    return {
        "trial": "runs/x/00-trial-0", "parent": "runs/p4/00-trial-0", "temperature": 1.25, "parent_temperature": 1.0,
        "temperature_source": {"kind": "pool"}, "panels": PANELS, "missing": [],
        "unknowable": {"candidate": None, "parent": 0.0}, "complete": True, "passed": False, **changes,
    }  # fmt: skip


def printed(value: dict[str, Any], width: int = 100) -> list[str]:
    out = io.StringIO()
    print_readout(value, parse_spec(edited()), Console(file=out, width=width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def readout(**arms: dict[str, Any]) -> dict[str, Any]:
    named = {name.replace("_", "-"): arm for name, arm in arms.items()}
    return {
        "round": 41, "registered": "PLAN.md > Round 41", "arms": named, "ranking": {"4b": []},
        "candidates": {"4b": None},
    }  # fmt: skip


def line_of(lines: list[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def test_a_bound_is_shown_with_its_estimate_its_interval_and_what_it_needs() -> None:
    lines = printed(readout(**{"4b_a": comparison()}))
    assert line_of(lines, "1_hard").split() == [
        "1_hard", "+25.0", "%", "+12.5", "%", "to", "+37.5", "%", "lower", ">", "+0.0", "%", "✓", "pass",
    ]  # fmt: skip
    assert line_of(lines, "2_both").split() == [
        "2_both", "+0.100", "+0.040", "to", "+0.160", "upper", "≤", "+0.050", "✗", "fail",
    ]  # fmt: skip
    assert line_of(lines, "2_unknowable").endswith("? not known")
    assert lines[-1] == "candidate 4b: none"


def test_state_is_said_in_words_and_what_is_missing_is_listed() -> None:
    lines = printed(
        readout(
            **{"4b_a": comparison(passed=True, missing_optional=["candidate:runs/b"]),
               "4b_b": {"trial": None, "parent": "p", "missing": ["parent:runs/c"], "complete": False, "passed": None}}
        )
    )  # fmt: skip
    assert "4b-a  ✓ pass" in lines
    assert "4b-b  ? not known" in lines
    assert "missing, optional: candidate:runs/b" in lines
    assert "missing: parent:runs/c" in lines


def test_a_temperature_fitted_where_the_arm_was_trained_is_warned_about() -> None:
    source = {"kind": "trial development rows", "training_corpus": True}
    lines = printed(readout(**{"4b_a": comparison(temperature_source=source)}))
    assert "T 1.250 from trial development rows; parent T 1.000" in lines
    assert line_of(lines, "!!!").startswith("!!! T was fitted on rows of a suite that the arm was trained on")


def test_length_buckets_with_rows_have_a_line_each() -> None:
    buckets = {"acc_under_2k": {"candidate": 0.5, "parent": 0.25, "n": 4},
               "acc_2k_plus": {"candidate": None, "parent": None, "n": 0}}  # fmt: skip
    panels = {**PANELS, "hard": {**PANELS["hard"], **buckets, "by_length": {"edges": [2048], "tokens": "rows"}}}
    lines = printed(readout(**{"4b_a": comparison(panels=panels)}))
    assert [line for line in lines if line.startswith("hard ")] == [
        "hard under_2k: acc 50.0 %, parent 25.0 % (4 questions)"
    ]


def test_names_and_notes_are_data_for_the_terminal() -> None:
    value = readout(**{"4b_a": comparison(notes=["[red]\x1b[2J"], missing=["candidate:[/bold]\r"])})
    value["registered"] = "\x1b]0;title\x07[link=x]"
    text = "\n".join(printed(value))
    assert all(character.isprintable() or character == "\n" for character in text)
    for word in (r"[red]\x1b[2J", r"candidate:[/bold]\r", r"\x1b]0;title\x07[link=x]"):
        assert word in text


def test_a_verdict_names_its_round_and_stage() -> None:
    out = io.StringIO()
    stage = parse_spec(edited()).confirm["tests"]
    print_verdict({"round": 41, "stage": "tests", "arm": "4b-a", **comparison()}, stage, Console(file=out, width=80))
    assert out.getvalue().startswith("Round 41, stage tests")
    assert "gain" in out.getvalue()


def test_rates_are_per_cent_and_scores_are_not() -> None:
    assert format_figure(0.1234, "coverage_at_5pct_error") == "12.3 %"
    assert format_figure(-0.0005, "brier", signed=True) == "-0.001"
    assert format_figure(None, "acc") == "not known"


def test_an_arm_without_rows_of_its_parent_still_has_its_own_temperature_shown() -> None:
    arm = {key: value for key, value in comparison().items() if key not in ("parent_temperature", "panels")}
    arm |= {"missing": ["parent:runs/p4-hard"], "complete": False, "passed": None}
    lines = printed(readout(**{"4b_a": arm}))
    assert line_of(lines, "T 1.250").endswith("parent T not known")
    assert "missing: parent:runs/p4-hard" in lines
