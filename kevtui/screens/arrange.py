"""Where each panel goes, for every size of terminal: pure arithmetic, so that any size can be tried in a test."""

from collections.abc import Mapping
from typing import NamedTuple

from textual.geometry import Region, Size

HEADER, ATTENTION, MONEY, STUDIES, PLOT = "header", "attention", "money", "studies", "plot"
READS, READOUT, VERDICTS, EVENTS, LEASES = "reads", "readout", "verdicts", "events", "leases"
LOG, FILTER, ACTIONS, FOOTER, TABS = "log", "filter", "actions", "footer", "tabs"

NAMES = frozenset(
    (
        TABS,
        HEADER,
        ATTENTION,
        MONEY,
        STUDIES,
        PLOT,
        READS,
        READOUT,
        VERDICTS,
        EVENTS,
        LEASES,
        LOG,
        FILTER,
        ACTIONS,
        FOOTER,
    )
)

PANELS = NAMES - {TABS, HEADER, LOG, FILTER, ACTIONS, FOOTER}
"""Those that can be left with the focus, or alone on the screen."""

FLAT_WIDTH, FLAT_HEIGHT = 100, 30
"""Below either the screen is in the phone form: one column, rules instead of boxes."""

TALL = 32
"""From this height on the phone form has room for every panel."""

HEIGHT_FOR_TABS = 10
"""Below it the line of tabs goes; their keys stay."""

MOST_ACTIONS = 4
"""Rows of actions that are in sight at once."""

PLOT_WIDTH = 40
STUDIES_WIDTH = 110
"""Where this much is left for the table, the plot stands beside it."""


class Need(NamedTuple):
    name: str
    least: int
    wanted: int


def is_flat(size: Size) -> bool:
    return size.width < FLAT_WIDTH or size.height < FLAT_HEIGHT


def share(total: int, needs: list[Need]) -> dict[str, int]:
    """`total` lines among `needs`: in their order each its least, then more up to what it wants; the rest to the last.

    One whose least does not fit gets nothing.
    """
    given: dict[str, int] = {}
    left = total
    for need in needs:
        if need.least <= left:
            given[need.name] = need.least
            left -= need.least
    for need in needs:
        if need.name in given:
            more = min(left, max(0, need.wanted - need.least))
            given[need.name] += more
            left -= more
    if given and left > 0:
        given[list(given)[-1]] += left
    return given


def arrange(
    size: Size,
    contents: Mapping[str, int],
    *,
    zoomed: str | None = None,
    log: bool = False,
    filtering: bool = False,
) -> dict[str, Region]:
    """A region for each panel that has a place.

    `contents` holds the lines of content of each panel that is not empty. A zoomed panel has everything between
    header and footer. No two regions overlap, and all lie inside `size`.
    """
    width, height = size
    flat = is_flat(size)
    regions: dict[str, Region] = {}
    top, bottom = 0, height
    acting = min(MOST_ACTIONS, contents.get(ACTIONS, 0), max(0, height // 4))
    head = 2 if flat and height >= 12 and zoomed is None else 1
    tabs = contents.get(TABS, 0) if height >= HEIGHT_FOR_TABS else 0
    for name, lines in ((TABS, tabs), (HEADER, head), (FOOTER, 1), (ACTIONS, acting), (FILTER, 1)):
        if not lines or (name == FILTER and not filtering) or bottom - top < lines or (name == FOOTER and height < 4):
            continue
        if name in (TABS, HEADER):
            regions[name] = Region(0, top, width, lines)
            top += lines
        else:
            bottom -= lines
            regions[name] = Region(0, bottom, width, lines)
    area = Region(0, top, width, bottom - top)
    if area.height <= 0 or width <= 0:
        return {name: region for name, region in regions.items() if region.area}
    if zoomed is not None and zoomed != ACTIONS:
        regions[zoomed] = area
    elif flat:
        regions |= _flat(area, contents, log)
    else:
        regions |= _boxes(area, contents, log)
    return {name: region for name, region in regions.items() if region.area}


def _flat(area: Region, contents: Mapping[str, int], log: bool) -> dict[str, Region]:
    if log:
        return {LOG: area}
    rule = 1
    order = [Need(MONEY, 1, 2), Need(STUDIES, 3, contents.get(STUDIES, 0) + rule)]
    if contents.get(ATTENTION):
        order.insert(1, Need(ATTENTION, 1, min(3, contents[ATTENTION])))
    if contents.get(READOUT):
        # Trials may be many: some of the arms stay in sight whatever they take.
        wanted = contents[READOUT] + rule
        order.append(Need(READOUT, max(3, min(wanted, area.height // 4)), wanted))
    others = [READS, LEASES, VERDICTS] if area.height >= TALL else [READS]
    order += [Need(name, 2, contents[name] + rule) for name in others if contents.get(name)]
    if contents.get(EVENTS):
        order.append(Need(EVENTS, 2, contents[EVENTS] + rule))
    heights = share(area.height, order)
    return stack(area, heights)


def _boxes(area: Region, contents: Mapping[str, int], log: bool) -> dict[str, Region]:
    box = 2
    upper = {MONEY: min(3, contents.get(MONEY, 3)) + box}
    if contents.get(ATTENTION):
        upper = {ATTENTION: min(5, contents[ATTENTION]) + box} | upper
    regions = stack(area, upper)
    used = sum(region.height for region in regions.values())
    rest = Region(area.x, area.y + used, area.width, area.height - used)

    left = [name for name in (READS, LEASES, EVENTS) if contents.get(name)]
    right = [name for name in (READOUT, VERDICTS) if contents.get(name)]
    studies = contents.get(STUDIES, 0) + box
    below = log or bool(left or right)
    plot = contents.get(PLOT) and rest.width - PLOT_WIDTH >= STUDIES_WIDTH
    floor = 10 if plot else 5
    if below:
        # A log wants all it can get: nothing stands below the studies to say how little would do.
        spare = 0 if log else rest.height - _tallest(contents, left, right)
        middle = min(max(studies, floor), max(rest.height * 45 // 100, spare))
        middle = max(min(floor, rest.height), middle)
    else:
        middle = rest.height
    band = Region(rest.x, rest.y, rest.width, middle)
    if plot:
        regions[STUDIES] = Region(band.x, band.y, band.width - PLOT_WIDTH, band.height)
        regions[PLOT] = Region(band.right - PLOT_WIDTH, band.y, PLOT_WIDTH, band.height)
    else:
        regions[STUDIES] = band
    foot = Region(rest.x, rest.y + middle, rest.width, rest.height - middle)
    if foot.height < 3:
        return regions
    if log:
        regions[LOG] = foot
        return regions
    column = min(max(58, foot.width * 38 // 100), 70)
    if not right or not left:
        column = foot.width if left else 0
    regions |= _column(Region(foot.x, foot.y, column, foot.height), left, contents)
    regions |= _column(Region(foot.x + column, foot.y, foot.width - column, foot.height), right, contents)
    return regions


def _tallest(contents: Mapping[str, int], *columns: list[str]) -> int:
    return max((sum(contents[name] + 2 for name in column) for column in columns), default=0)


def _column(area: Region, names: list[str], contents: Mapping[str, int]) -> dict[str, Region]:
    needs = [Need(name, min(5, contents[name] + 2), contents[name] + 2) for name in names]
    return stack(area, share(area.height, needs))


def stack(area: Region, heights: Mapping[str, int]) -> dict[str, Region]:
    """Regions of these heights one under the other in `area`; what no longer fits gets less, or nothing."""
    regions, y = {}, area.y
    for name, height in heights.items():
        height = min(height, area.bottom - y)
        if height > 0:
            regions[name] = Region(area.x, y, area.width, height)
            y += height
    return regions
