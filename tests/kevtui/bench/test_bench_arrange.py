"""The panels of a bench have a place on any terminal."""

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from kevtui.bench import places
from kevtui.bench.places import arrange
from kevtui.screens.arrange import FOOTER, HEADER

RUN = (places.FINDINGS, places.RUN, places.SUBMISSIONS, places.TRAJECTORY, places.JOURNAL, places.FAILURES,
       places.AGENT_LOG)  # fmt: skip
SEVERAL = (places.FINDINGS, places.MATRIX, places.RUNS, places.TRAJECTORY)

sizes = st.builds(Size, st.integers(1, 400), st.integers(1, 150))
contents = st.builds(
    lambda names, lines: dict(zip(names, lines, strict=False)),
    st.sampled_from((RUN, SEVERAL)),
    st.lists(st.integers(0, 500), min_size=len(RUN), max_size=len(RUN)),
)


@given(sizes, contents, st.none() | st.sampled_from(RUN), st.booleans())
def test_no_two_panels_overlap_and_none_leaves_the_screen(
    size: Size, contents: dict[str, int], zoomed: str | None, log: bool
) -> None:
    regions = arrange(size, contents, zoomed=zoomed, log=log)
    cells: set[tuple[int, int]] = set()
    for region in regions.values():
        assert region.area > 0
        assert size.region.contains_region(region)
        covered = {(x, y) for y in range(region.y, region.bottom) for x in (region.x, region.right - 1)}
        assert not covered & cells
        cells |= covered


def test_a_large_screen_has_every_panel_at_once() -> None:
    for names in (RUN, SEVERAL):
        assert set(arrange(Size(160, 50), dict.fromkeys(names, 6))) == {*names, HEADER, FOOTER}


def test_the_phone_keeps_time_scores_and_journal_in_sight_of_a_long_run() -> None:
    regions = arrange(Size(80, 24), dict.fromkeys(RUN, 300) | {places.RUN: 4})
    assert regions[places.RUN].height == 4
    assert min(regions[name].height for name in (places.SUBMISSIONS, places.JOURNAL)) >= 4
