"""Which lines of a log are in view: pure movement over a `LogFile`, with no screen in it."""

from dataclasses import dataclass

from kevtui.observe.log_file import LogFile, LogLine


@dataclass(frozen=True, slots=True)
class Page:
    """The lines in view, and whether the view moves along as the log grows."""

    lines: tuple[LogLine, ...] = ()
    following: bool = True

    @property
    def top(self) -> int:
        """Where the first line in view starts."""
        return self.lines[0].start if self.lines else 0

    @property
    def bottom(self) -> int:
        """Where the last line in view ends."""
        return self.lines[-1].end if self.lines else 0


COPIED_BYTES = 1024 * 1024
"""Most that is taken for the clipboard: terminals drop longer sequences, or hang on them."""


def last_page(log: LogFile, _page: Page, height: int) -> Page:
    """The end of the log, following it."""
    return Page(tuple(log.before(log.size, height)))


def first_page(log: LogFile, _page: Page, height: int) -> Page:
    """The beginning of the log."""
    return page_from(log, 0, height)


def page_from(log: LogFile, start: int, height: int) -> Page:
    """The page whose first line starts at `start`; the last page where the log ends before it is full."""
    lines = log.after(start, height)
    if len(lines) < height:
        return last_page(log, Page(), height)
    return Page(tuple(lines), following=False)


def moved(log: LogFile, page: Page, rows: int, height: int) -> Page:
    """`page` moved down by `rows` lines, or up where `rows` is negative; following once the end is reached."""
    if rows < 0:
        above = log.before(page.top, -rows)
        return page_from(log, above[0].start, height) if above else page_from(log, page.top, height)
    below = log.after(page.top, rows + 1)
    return page_from(log, below[-1].start, height) if len(below) > rows else last_page(log, Page(), height)


def page_around(log: LogFile, start: int, height: int) -> Page:
    """The page that shows the line at `start` with a third of the height above it."""
    above = log.before(start, height // 3)
    first = above[0].start if above else start
    lines = log.after(first, height)
    if len(lines) < height:
        lines = log.before(log.size, height)
    return Page(tuple(lines), following=False)


def grown(log: LogFile, page: Page, height: int) -> Page:
    """`page` after the log grew.

    A followed page scrolls only when it is full, and then by a quarter of its height at once: between two scrolls
    a new line repaints one row instead of all, which is what a slow connection can carry.
    """
    if not page.following:
        return (
            Page(tuple(log.after(page.top, height)), following=False) if page.lines else last_page(log, Page(), height)
        )
    lines = log.after(page.top, height + 1)
    if len(lines) <= height:
        return Page(tuple(lines))
    return Page(tuple(log.before(log.size, max(1, height - height // 4))))


def resized(log: LogFile, page: Page, height: int) -> Page:
    """`page` in a view that has become `height` lines high: its end stays where it was followed, else its top."""
    return last_page(log, page, height) if page.following else page_from(log, page.top, height)


def lines_between(log: LogFile, first: int, last: int) -> list[LogLine]:
    """The lines that start from `first` to `last`, as far as `COPIED_BYTES` reach."""
    lines, length, position = [], 0, first
    while position <= last and length < COPIED_BYTES and (line := log.line_at(position)):
        lines.append(line)
        length += len(line.text)
        position = line.end
    return lines
