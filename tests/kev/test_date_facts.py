"""The note on dates says how far apart they are, once, wherever the state keeps its text."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev.predictors.date_facts import MONTHS, with_date_facts

TEXT = "Sold on March 1, 2026. Sent back 2026-03-31."
SAME = "2026-05-02 is the same day as May 2, 2026."
NOTE = "2026-03-31 is 30 days after March 1, 2026."


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (TEXT, f"{TEXT}\n\ndate_facts: {NOTE}"),
        ({"case": TEXT}, {"case": TEXT, "date_facts": NOTE}),
        (["x", TEXT], ["x", TEXT, {"date_facts": NOTE}]),
        ("2026-03-02, 2026-03-01", "2026-03-02, 2026-03-01\n\ndate_facts: 2026-03-01 is 1 day before 2026-03-02."),
        (
            "May 2, 2026 or 2026-05-02",
            "May 2, 2026 or 2026-05-02\n\ndate_facts: 2026-05-02 is the same day as May 2, 2026.",
        ),
        ("Only 2026-03-01 and 2026-03-01", "Only 2026-03-01 and 2026-03-01"),
        ("June 31, 2026 and 2026-13-01", "June 31, 2026 and 2026-13-01"),
        (None, None),
        (7, 7),
    ],
)
def test_dates_are_related_in_the_order_they_were_found(state: object, found: object) -> None:
    assert with_date_facts(state) == found
    assert with_date_facts(found) == found, "a second time changes nothing"


def test_every_pair_of_dates_gets_its_sentence() -> None:
    note = str(with_date_facts("2026-01-01 2026-01-02 2026-01-04")).partition("date_facts: ")[2]
    one, two, four = "2026-01-01", "2026-01-02", "2026-01-04"
    assert note.split(". ") == [
        f"{two} is 1 day after {one}", f"{four} is 3 days after {one}", f"{four} is 2 days after {two}.",
    ]  # fmt: skip


@given(st.dates(date(1000, 1, 1), date(9000, 1, 1)), st.integers(1, 3000))
def test_both_spellings_of_a_date_are_the_same_day(day: date, apart: int) -> None:
    later = day + timedelta(days=apart)
    spelled = f"{MONTHS[later.month - 1]} {later.day}, {later.year}"
    noted = with_date_facts(f"{day.isoformat()} and {spelled}")
    unit = "day" if apart == 1 else "days"
    assert str(noted).endswith(f"{spelled} is {apart} {unit} after {day.isoformat()}.")
