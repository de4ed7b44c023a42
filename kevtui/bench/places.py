"""Where each panel of a bench goes, for every size of terminal: pure arithmetic."""

from collections.abc import Mapping
from typing import Final

from textual.geometry import Region, Size

from kevtui.screens.arrange import FOOTER, HEADER, LOG, Need, is_flat, share, stack

FINDINGS, RUN, SUBMISSIONS, TRAJECTORY = "findings", "run", "submissions", "trajectory"
JOURNAL, FAILURES, AGENT_LOG, RUNS, MATRIX = "journal", "failures", "agent_log", "runs", "matrix"

NAMES: Final = frozenset(
    (HEADER, FINDINGS, RUN, SUBMISSIONS, TRAJECTORY, JOURNAL, FAILURES, AGENT_LOG, RUNS, MATRIX, LOG, FOOTER)
)

PLOT_WIDTH: Final = 56
TABLE_WIDTH: Final = 60
"""Where this much is left for the table, the plot stands beside it."""

_BOX, _RULE = 2, 1
_PLOT_HEIGHT = 10


def arrange(
    size: Size, contents: Mapping[str, int], *, zoomed: str | None = None, log: bool = False
) -> dict[str, Region]:
    """A region for each panel that has a place; `contents` holds the lines of each panel that is not empty.

    A zoomed panel has everything between header and footer. No two regions overlap, and all lie inside `size`.
    """
    width, height = size
    regions: dict[str, Region] = {}
    top, bottom = 0, height
    if height >= 1:
        regions[HEADER] = Region(0, 0, width, 1)
        top = 1
    if height >= 4:
        bottom -= 1
        regions[FOOTER] = Region(0, bottom, width, 1)
    area = Region(0, top, width, bottom - top)
    if area.height > 0 and width > 0:
        if zoomed is not None:
            regions[zoomed] = area
        elif is_flat(size):
            regions |= {LOG: area} if log else _flat(area, contents)
        else:
            regions |= _boxes(area, contents, log=log)
    return {name: region for name, region in regions.items() if region.area}


def _flat(area: Region, contents: Mapping[str, int]) -> dict[str, Region]:
    order = []
    if contents.get(FINDINGS):
        order.append(Need(FINDINGS, 1, min(3, contents[FINDINGS])))
    if contents.get(RUN):
        order.append(Need(RUN, 2, contents[RUN]))
    for name, least in ((MATRIX, 3), (SUBMISSIONS, 4), (RUNS, 4), (JOURNAL, 3)):
        if contents.get(name):
            wanted = contents[name] + _RULE
            # Some of each stays in sight, however many there are of the one above.
            most = area.height * 2 // 3 if name == RUNS else area.height // 3
            order.append(Need(name, min(least, wanted), max(least, min(wanted, most))))
    for name, least in ((TRAJECTORY, 8), (AGENT_LOG, 3)):
        if contents.get(name) and area.height >= sum(need.wanted for need in order) + least:
            order.append(Need(name, least, least))
    return stack(area, share(area.height, order))


def _boxes(area: Region, contents: Mapping[str, int], *, log: bool) -> dict[str, Region]:
    above = {name: min(most, contents[name]) + _BOX for name, most in ((FINDINGS, 5), (RUN, 4)) if contents.get(name)}
    if contents.get(MATRIX):
        above[MATRIX] = min(8, contents[MATRIX]) + _BOX
    regions = stack(area, above)
    used = sum(region.height for region in regions.values())
    rest = Region(area.x, area.y + used, area.width, area.height - used)
    if log:
        return regions | {LOG: rest}
    table = RUNS if contents.get(RUNS) else SUBMISSIONS
    below = [name for name in (JOURNAL, AGENT_LOG) if contents.get(name)]
    wanted = max(contents.get(table, 0) + _BOX, _PLOT_HEIGHT + _BOX if contents.get(TRAJECTORY) else 0)
    band_height = min(wanted, rest.height * 2 // 5) if below else rest.height
    band = Region(rest.x, rest.y, rest.width, max(min(6, rest.height), band_height))
    regions |= _beside(band, table, TRAJECTORY if contents.get(TRAJECTORY) else None, PLOT_WIDTH)
    foot = Region(rest.x, band.bottom, rest.width, rest.height - band.height)
    needs = [Need(JOURNAL, 5, contents[JOURNAL] + _BOX)] if JOURNAL in below else []
    if AGENT_LOG in below:
        needs.append(Need(AGENT_LOG, 4, contents[AGENT_LOG] + _BOX))
    heights = share(foot.height, needs)
    y = foot.y
    for name in below:
        if name not in heights:
            continue
        row = Region(foot.x, y, foot.width, heights[name])
        regions |= _beside(row, name, FAILURES if name == JOURNAL and contents.get(FAILURES) else None, 34)
        y = row.bottom
    return regions


def _beside(row: Region, name: str, other: str | None, width: int) -> dict[str, Region]:
    """`name` in `row`, and `other` at its right where the row is wide enough for both."""
    if other is None or row.width - width < TABLE_WIDTH:
        return {name: row}
    left = row.width - width
    return {name: Region(row.x, row.y, left, row.height), other: Region(row.x + left, row.y, width, row.height)}
