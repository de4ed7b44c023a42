"""Panels have a place on any terminal."""

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from kevtui.screens import arrange as places
from kevtui.screens.arrange import Need, arrange, is_flat, share

EVERYTHING = dict.fromkeys(
    (places.ATTENTION, places.MONEY, places.STUDIES, places.PLOT, places.READS, places.READOUT, places.VERDICTS,
     places.EVENTS, places.LEASES), 6,
)  # fmt: skip

sizes = st.builds(Size, st.integers(1, 500), st.integers(1, 200))
contents = st.dictionaries(st.sampled_from(sorted(EVERYTHING)), st.integers(0, 2000))


@given(sizes, contents, st.none() | st.sampled_from(sorted(EVERYTHING)), st.booleans(), st.booleans())
def test_no_two_panels_overlap_and_none_leaves_the_screen(
    size: Size, contents: dict[str, int], zoomed: str | None, log: bool, filtering: bool
) -> None:
    regions = arrange(size, contents, zoomed=zoomed, log=log, filtering=filtering)
    cells = set()
    for region in regions.values():
        assert region.area > 0
        assert size.region.contains_region(region)
        covered = {(x, y) for y in range(region.y, region.bottom) for x in (region.x, region.right - 1)}
        assert not covered & cells
        cells |= covered


def test_a_large_screen_has_every_panel_at_once() -> None:
    regions = arrange(Size(160, 50), EVERYTHING)
    assert set(regions) == {*EVERYTHING, places.HEADER, places.FOOTER}


def test_what_is_wrong_comes_first_then_money_then_motion() -> None:
    for size in (Size(160, 50), Size(120, 40)):
        regions = arrange(size, EVERYTHING)
        assert regions[places.ATTENTION].y < regions[places.MONEY].y < regions[places.STUDIES].y


def test_the_phone_has_the_panels_that_matter_without_boxes() -> None:
    assert is_flat(Size(80, 24))
    regions = arrange(Size(80, 24), EVERYTHING)
    assert {places.ATTENTION, places.MONEY, places.STUDIES, places.READOUT, places.EVENTS} < set(regions)


def test_many_trials_leave_some_arms_of_the_read_out_in_sight_on_the_phone() -> None:
    regions = arrange(Size(80, 24), EVERYTHING | {places.STUDIES: 200})
    rule_and_candidates = 2
    assert regions[places.READOUT].height - rule_and_candidates >= 3
    assert regions[places.STUDIES].height > regions[places.READOUT].height


def test_an_empty_panel_gives_its_place_away() -> None:
    full = arrange(Size(160, 50), EVERYTHING)
    without = arrange(Size(160, 50), EVERYTHING | {places.ATTENTION: 0, places.LEASES: 0})
    assert places.ATTENTION not in without
    assert places.LEASES not in without
    assert without[places.READS].height > full[places.READS].height or without[places.EVENTS] != full[places.EVENTS]


@given(st.builds(Size, st.integers(1, 500), st.integers(4, 200)), contents)
def test_an_open_log_has_a_place_however_long_the_tables_are(size: Size, contents: dict[str, int]) -> None:
    assert places.LOG in arrange(size, contents, log=True)


def test_a_zoomed_panel_has_all_but_header_and_footer() -> None:
    regions = arrange(Size(160, 50), EVERYTHING, zoomed=places.READS)
    assert set(regions) == {places.HEADER, places.READS, places.FOOTER}
    assert regions[places.READS].height == 48


@given(
    st.integers(0, 100),
    st.lists(st.tuples(st.integers(1, 10), st.integers(0, 30)), min_size=1, max_size=6),
)
def test_lines_shared_out_are_all_used_and_no_more(total: int, wishes: list[tuple[int, int]]) -> None:
    needs = [Need(str(i), least, least + more) for i, (least, more) in enumerate(wishes)]
    given_out = share(total, needs)
    assert sum(given_out.values()) == (total if given_out else 0)
    assert all(given_out[need.name] >= need.least for need in needs if need.name in given_out)
