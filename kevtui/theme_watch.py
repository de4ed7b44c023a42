"""Reads a theme of the user again whenever its file is written, so that who edits colours sees them at once."""

import threading
from collections.abc import Callable
from pathlib import Path

from kevtui import themes

LOOK_S = 0.5
"""Twice within the second in which a change should be seen; a look asks the file system for two dates."""

_Mark = tuple[Path, int, int, int]
"""A file and what tells that it was written or put in place anew."""


class ThemeWatch(threading.Thread):
    """Looks at the file of one theme until stopped. The two callables must be safe to call from a thread."""

    def __init__(
        self, palette: themes.Palette, deliver: Callable[[themes.Palette], object], fail: Callable[[str], object]
    ) -> None:
        # A daemon: a home on a dead network volume must not keep the program from ending.
        super().__init__(name="theme", daemon=True)
        self._deliver = deliver
        self._fail = fail
        self._stopping = threading.Event()
        self.follow(palette)

    def follow(self, palette: themes.Palette) -> None:
        """Look at the file of another theme from now on; `palette` is what it held."""
        self._palette = palette
        self._mark = _mark(palette.name)

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        """Read the theme if its file is another one than last time; what is wrong with it is told once."""
        palette, before = self._palette, self._mark
        mark = _mark(palette.name)
        if mark == before:
            return
        try:
            read = themes.load(palette.name)
        except themes.BadTheme as error:
            self._mark = mark
            self._fail(f"{error}; the colours stay as they are")
            return
        if self._palette is palette:  # else another theme was chosen meanwhile
            self._palette, self._mark = read, mark
            if read != palette:
                self._deliver(read)


def _mark(name: str) -> _Mark | None:
    path = themes.find(name)
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return path, found.st_mtime_ns, found.st_size, found.st_ino
