"""When a trial will end is told so that nobody takes it for another day."""

from dataclasses import replace
from datetime import timedelta

import pytest
import sample_snapshots as samples
from shown_app import shown


@pytest.mark.parametrize(("finish", "says"), [
    (timedelta(hours=23), " > 07:40"), (timedelta(days=8), "in 8 d "), (timedelta(days=4000), "in years "),
])  # fmt: skip
async def test_an_end_that_is_days_away_is_not_told_by_an_hour_of_today(finish: timedelta, says: str) -> None:
    night = samples.night()
    timeout = samples.NOW.replace(hour=7, minute=40) - samples.NOW
    far = samples.projection(finish, timeout, timedelta(0))
    studies = tuple(
        replace(one, trials=tuple(replace(t, projection=far if t.projection else None) for t in one.trials))
        for one in night.studies
    )
    for size in ((160, 50), (80, 24)):
        async with shown(replace(night, studies=studies), size) as it:
            clock = f"{far.finish_at:%H:%M}"
            assert says in it.text() and " > 07:40" in it.text()
            assert (f"{clock} " in it.text()) == (finish < timedelta(days=1))
