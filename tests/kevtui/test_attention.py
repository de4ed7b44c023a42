"""What the list of what needs somebody says of each kind of news."""

from dataclasses import replace

import sample_snapshots as samples
from shown_app import shown

from kevtui.observe.snapshot import Alert, Finding, Severity


async def test_only_a_candidate_is_said_to_be_ready_and_other_news_is_news() -> None:
    news = (
        Alert("candidate", Severity.INFO, "9b", "2b is ready as the candidate of 9b"),
        Alert("untimed", Severity.INFO, "replay", "no time is recorded of some of it"),
    )
    async with shown(replace(samples.calm(), alerts=news)) as it:
        told = [line for line in it.lines() if "candidate of 9b" in line or "no time is recorded" in line]
        assert ["✓ ready" in line for line in told] == [True, False]


async def test_that_the_folder_of_all_runs_is_away_is_told_before_everything_else() -> None:
    alerts = tuple(Alert("past-timeout", Severity.CRITICAL, f"study/{number}", "is late") for number in range(30))
    findings = (Finding("runs", "is gone"), Finding("runs/a.spawn.json", "torn"))
    snapshot = replace(samples.calm(), alerts=alerts, findings=findings)
    async with shown(snapshot, size=(80, 24)) as it:
        told = [line for line in it.lines() if "is gone" in line or "is late" in line or "torn" in line]
        assert "is gone" in told[0] and "is late" in told[1]
        assert not any("torn" in line for line in told)
