"""Rates, bounds and the spend rule give the registered figures, and no price is ever made up."""

import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.budget import (
    GPU_HOURLY,
    INTERPOLATION,
    Account,
    Committed,
    attempt_rest_bound,
    check_study,
    committed,
    compute_bound,
    cpu_bound,
    dollars,
    hourly_rate,
    parse_gpu,
    recorded,
    reserve,
    spent,
)
from kev.errors import Refused


@pytest.mark.parametrize(
    ("gpu", "full_weight", "rate"),
    [
        ("H100", False, "5.6752"),
        ("H200", False, "6.2652"),
        ("B200", False, "7.9752"),
        ("T4", False, "2.3152"),
        ("H200", True, "9.2848"),
        ("H200:8", True, "41.1664"),
    ],
)
def test_the_hourly_rates_are_the_registered_ones(gpu: str, full_weight: bool, rate: str) -> None:
    assert hourly_rate(gpu, full_weight) == Decimal(rate)


@pytest.mark.parametrize(
    ("gpu", "timeout", "trials", "full_weight", "bound", "record"),
    [
        ("H200:8", 28800, 1, True, "987.9936", "987.99"),
        ("H200:8", 14400, 1, True, "493.9968", "494.00"),
        ("H200:8", 10800, 1, True, "370.4976", "370.50"),
        ("H200", 28800, 1, False, "50.1216", "50.12"),
        ("H200", 28800, 2, False, "100.2432", "100.24"),
        ("H200", 12600, 3, False, "65.7846", "65.78"),
        ("H200", 2700, 20, False, "93.978", "93.98"),
        ("H200", 3600, 1, False, "6.2652", "6.27"),
    ],
)
def test_the_bounds_are_the_registered_ones_and_rounded_only_on_record(
    gpu: str, timeout: int, trials: int, full_weight: bool, bound: str, record: str
) -> None:
    assert compute_bound(gpu, timeout, trials, full_weight) == Decimal(bound)
    assert str(recorded(compute_bound(gpu, timeout, trials, full_weight))) == record


def test_a_job_without_cards_is_bounded_by_its_cores_and_memory() -> None:
    assert cpu_bound(INTERPOLATION, 3 * 3600) == Decimal("4.2072")


UNPRICED = ["B300", "H20O", "h200", "H200:0", "H200:-1", "H200:1.5", "H200:", "H200:08", "H200:9", "H200:8:1", " H200",
            "H200\n", "H200:٢", "", "any", "A100", None, True, 200, ["H200"], {"H200": 1}, "H200" * 40]  # fmt: skip


@pytest.mark.parametrize("gpu", UNPRICED)
def test_a_card_without_a_price_is_refused_by_value_with_the_known_types(gpu: object) -> None:
    for attempt in (
        lambda: parse_gpu(gpu),
        lambda: hourly_rate(gpu, True),
        lambda: compute_bound(gpu, 3600, 1),
        lambda: attempt_rest_bound(gpu, 3600, 0, 0),
        lambda: check_study("r70", gpu, 3600, Decimal(100), 1),
    ):
        with pytest.raises(Refused) as refusal:
            attempt()
        message = str(refusal.value)
        assert repr(gpu)[:30] in message and "\n" not in message
        assert all(known in message for known in GPU_HOURLY)


@given(st.text(max_size=12))
def test_a_rate_always_holds_the_price_of_its_card(text: str) -> None:
    try:
        rate = hourly_rate(text)
    except Refused:
        return
    card, _, count = text.partition(":")
    assert rate > GPU_HOURLY[card] * int(count or 1)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), None, "3600", True])
def test_a_timeout_that_is_none_has_no_bound(timeout: object) -> None:
    with pytest.raises(Refused, match="timeout"):
        compute_bound("H200", timeout, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("trials", [0, -2, 1.5, True, None])
def test_a_count_of_trials_that_is_none_has_no_bound(trials: object) -> None:
    with pytest.raises(Refused, match="trials"):
        compute_bound("H200", 3600, trials)  # type: ignore[arg-type]


@given(st.sampled_from(sorted(GPU_HOURLY)), st.integers(1, 8), st.integers(60, 86400), st.integers(1, 8), st.booleans())
def test_a_bound_grows_in_proportion_to_trials_and_is_exact(
    card: str, count: int, timeout: int, trials: int, full_weight: bool
) -> None:
    one = compute_bound(f"{card}:{count}", timeout, 1, full_weight)
    many = compute_bound(f"{card}:{count}", timeout, trials, full_weight)
    assert abs(many - one * trials) < Decimal("1e-20") * trials
    assert many * 3600 >= GPU_HOURLY[card] * count * timeout * trials


def test_what_a_running_trial_can_still_cost_shrinks_with_its_time_and_never_below_its_later_attempts() -> None:
    full = compute_bound("H200", 3600, 1, full_weight=True)
    assert attempt_rest_bound("H200", 3600, 0, 2, full_weight=True) == full
    assert attempt_rest_bound("H200", 3600, 1800, 0) == compute_bound("H200", 1800, 1)
    assert attempt_rest_bound("H200", 3600, 99999, 1) == compute_bound("H200", 3600, 1)
    assert attempt_rest_bound("H200", 3600, -50, 0) == compute_bound("H200", 3600, 1)


def test_a_study_within_its_limits_gets_its_bound() -> None:
    assert check_study("r70", "H200", 28800, Decimal(101), 2) == Decimal("100.2432")
    assert check_study("r71", "H200:8", 28800, Decimal(988), 1, full_weight=True) == Decimal("987.9936")


@pytest.mark.parametrize(
    ("timeout", "budget", "trials", "full_weight", "named"),
    [
        (59, 100, 1, False, "timeout 59"),
        (28801, 250, 1, False, "timeout 28801"),
        (86401, 1000, 1, True, "timeout 86401"),
        (28800, "250.01", 1, False, "budget"),
        (28800, "1000.01", 1, True, "budget"),
        (3600, 0, 1, False, "budget"),
        (3600, "NaN", 1, False, "budget"),
        (28800, 100, 2, False, r"100\.2432.*above its budget"),
        (3600, 100, 0, False, "trials 0"),
    ],
)
def test_a_study_past_a_limit_is_refused_with_its_name_and_figure(
    timeout: int, budget: object, trials: int, full_weight: bool, named: str
) -> None:
    with pytest.raises(Refused, match=f"study r70: .*{named}"):
        check_study("r70", "H200", timeout, Decimal(str(budget)), trials, full_weight)


def decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


def test_spend_is_the_last_reading_less_the_baseline() -> None:
    found = spent(Decimal("100.5"), decimals("101", "120.25"))
    assert found is not None and (found.usd, found.carried, found.resets) == (Decimal("19.75"), 0, 0)
    assert spent(Decimal(1), []) is None


def test_a_meter_that_falls_has_begun_a_new_cycle_and_what_was_spent_is_carried_over() -> None:
    found = spent(Decimal(500), decimals("512.4", "0", "3.5", "9", "2"))
    assert found is not None
    assert (found.usd, found.carried, found.resets) == (Decimal("12.4") + 9 + 2, Decimal("21.4"), 2)
    below_baseline = spent(Decimal(500), decimals("4"))
    assert below_baseline is not None and (below_baseline.usd, below_baseline.resets) == (Decimal(4), 1)


@given(
    st.decimals(0, 1000, places=4),
    st.lists(st.decimals(0, 1000, places=4), min_size=1, max_size=12),
    st.decimals(0, 1000, places=4),
)
def test_no_further_reading_ever_lowers_the_spend(baseline: Decimal, readings: list[Decimal], last: Decimal) -> None:
    before, after = spent(baseline, readings), spent(baseline, [*readings, last])
    assert before is not None and after is not None
    assert after.usd >= before.usd >= 0


def test_committed_work_without_a_bound_makes_the_sum_incomplete() -> None:
    assert committed([]) == Committed(Decimal(0), True)
    assert committed(decimals("1.5", "2")) == Committed(Decimal("3.5"), True)
    assert committed([Decimal("1.5"), None]) == Committed(Decimal("1.5"), False)


def account(**change: object) -> Account:
    values: dict[str, object] = {
        "authorization": Decimal(1000),
        "reserve": reserve(Decimal(1000)),
        "spent": Decimal("250.5"),
        "committed": Committed(Decimal("49.5")),
    }
    return Account(**(values | change))  # type: ignore[arg-type]


def test_headroom_is_what_is_left_after_reserve_spend_and_commitments() -> None:
    assert account().headroom == Decimal(600)
    assert account(spent=None).headroom is None
    assert account(spent=Decimal(990)).headroom == Decimal("-139.5")


def test_a_launch_must_stay_below_the_headroom() -> None:
    account().check_launch("study r70", Decimal("599.99"), reading_age_s=0)
    with pytest.raises(Refused, match=r"study r70: bound \$600\.00 .*\$600\.00.*\$1,000\..*\$100\..*\$250\.5.*\$49\.5"):
        account().check_launch("study r70", Decimal(600), reading_age_s=0)


def test_what_a_launch_lacks_is_told_to_less_than_a_cent_and_what_is_out_by_name() -> None:
    with pytest.raises(
        Refused, match=r"bound \$600\.0003 is .* headroom \$600\.00 .*committed \$49\.50: r69 \$49\.50\)"
    ):
        account().check_launch("study r70", Decimal("600.0003"), reading_age_s=0, out="r69 $49.50")


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "$0.00"), ("1.0442", "$1.0442"), ("-139.5", "-$139.50"), ("12000", "$12,000.00"), ("1E+3", "$1,000.00"),
     ("0.00000049", "$0.00"), ("0.001844", "$0.001844")],
)  # fmt: skip
def test_dollars_are_shown_with_their_cents_and_whatever_is_below_them(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("change", "age", "bound", "named"),
    [
        ({"spent": None}, 0.0, "1", "spend is unknown"),
        ({}, None, "1", "spend is unknown"),
        ({}, 901.0, "1", "901 s old"),
        ({}, -1.0, "1", "old"),
        ({}, float("nan"), "1", "old"),
        ({"committed": Committed(Decimal(1), False)}, 0.0, "1", "not fully known"),
        ({}, 0.0, "0", "no amount above zero"),
        ({}, 0.0, "-5", "no amount above zero"),
        ({}, 0.0, "NaN", "no amount above zero"),
    ],
)
def test_a_launch_on_figures_that_cannot_be_believed_is_refused(
    change: dict[str, object], age: float | None, bound: str, named: str
) -> None:
    with pytest.raises(Refused, match=f"study r70: .*{named}"):
        account(**change).check_launch("study r70", Decimal(bound), reading_age_s=age)


def test_the_module_loads_nothing_heavy() -> None:
    code = "import sys, kev.budget; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "torch", "pydantic", "modal", "textual"}
