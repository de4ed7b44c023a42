"""The look of the screen and of each panel, approved by eye; the clock is held still."""

from collections.abc import Callable
from typing import Any

import pytest
import sample_snapshots as samples
from shown_app import until_shown
from textual.pilot import Pilot

from kevtui.app import KevApp, Options
from kevtui.observe.snapshot import Snapshot

LARGE, MEDIUM, PHONE = (160, 50), (120, 40), (80, 24)
PANELS = ("studies", "money", "reads", "readout", "verdicts", "events", "leases", "attention", "plot")

Compare = Callable[..., bool]


def matches(
    snap_compare: Compare, snapshot: Snapshot, size: tuple[int, int], *, zoomed: str | None = None, **options: Any
) -> bool:
    source = samples.HeldSource(snapshot)
    app = KevApp(lambda: source, title="r41 · night-7", options=Options(**options))

    async def ready(pilot: Pilot[int]) -> None:
        await until_shown(pilot, snapshot)
        if zoomed is not None:
            pilot.app.screen.action_only(zoomed)  # type: ignore[attr-defined]
            await pilot.pause()

    return snap_compare(app, terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", [LARGE, MEDIUM, PHONE])
def test_whole_screen(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert matches(snap_compare, samples.night(), size)


@pytest.mark.parametrize("size", [LARGE, PHONE])
@pytest.mark.parametrize("panel", PANELS)
def test_panel_alone(snap_compare: Compare, panel: str, size: tuple[int, int]) -> None:
    assert matches(snap_compare, samples.night(), size, zoomed=panel)


@pytest.mark.parametrize("theme", ["light", "high-contrast", "deuteranopia", "tritanopia", "ansi16"])
def test_theme(snap_compare: Compare, theme: str) -> None:
    assert matches(snap_compare, samples.night(), PHONE, theme=theme)


def test_ascii_only(snap_compare: Compare) -> None:
    assert matches(snap_compare, samples.night(), MEDIUM, ascii=True)


def test_quiet_night(snap_compare: Compare) -> None:
    assert matches(snap_compare, samples.calm(), MEDIUM)


def test_many_trials(snap_compare: Compare) -> None:
    assert matches(snap_compare, samples.crowd(200), PHONE)
