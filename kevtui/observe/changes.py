"""When to look again: events of the file system where it sends any, and a slow stat poll behind them always.

Events are a convenience, never relied on: network volumes send none, the kernel's watchers run out, and a folder may
be unreadable when the watch begins. Whatever the watcher meets, waiting goes on and the poll finds the change.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from kevtui.observe import mounts

NO_WATCHER = "polling: no watcher left"
CHOSEN = "polling, as asked"

RETRY_S = 30.0
"""How often a watcher is asked for again after the system refused one."""

_STEP_MS = 40
_GROUP_MS = 80
"""Changes that come this close together are told as one: below the 150 ms in which the screen must follow."""


class Changes:
    """Watches some folders from one thread, which starts with the first wait."""

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        poll: bool = False,
        retry_s: float = RETRY_S,
        recursive: bool = True,
        shared_kind: Callable[[Path], str] = mounts.shared_kind,
    ) -> None:
        """`shared_kind` names the file system of a folder that another machine may change untold, else gives ""."""
        self._shared_kind = shared_kind
        self._recursive = recursive
        self._folders = [str(folder) for folder in folders]
        self._retry_s = retry_s
        self._wake = threading.Condition()
        self._paths: set[str] = set()
        self._stop = threading.Event()
        self._again = threading.Event()
        self._thread: threading.Thread | None = None
        self._poll = poll
        self.polling = CHOSEN if poll else self._told_apart()[1]
        """Why changes are polled for, or "" while a watcher tells of them."""

    def wait(self, timeout_s: float) -> bool:
        """Block until a change is told of, `close`, or the timeout; true for a change."""
        self._start()
        with self._wake:
            self._wake.wait_for(lambda: self._paths or self._stop.is_set(), timeout_s)
            return bool(self._paths) and not self._stop.is_set()

    def take(self) -> set[str]:
        """The paths told of since this was last called."""
        with self._wake:
            paths, self._paths = self._paths, set()
            return paths

    def renew(self) -> None:
        """Set the watch up again: folders that could not be watched may be readable now."""
        self._again.set()

    @property
    def closed(self) -> bool:
        return self._stop.is_set()

    def close(self) -> None:
        """End every wait now, from any thread."""
        with self._wake:
            self._stop.set()
            self._again.set()
            self._wake.notify_all()

    def _start(self) -> None:
        if self._thread is None and not self._poll and not self._stop.is_set():
            self._thread = threading.Thread(target=self._run, name="file-events", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        # Imported here, in the thread: it costs more than the first frame may.
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        while not self._stop.is_set():
            self._again.clear()
            telling, polling = self._told_apart()
            folders = [folder for folder in telling if Path(folder).is_dir()]
            try:
                if folders:
                    with RustNotify(folders, False, False, 0, self._recursive, True) as watcher:
                        self.polling = polling
                        self._listen(watcher.watch)
                    continue
                # Nothing to watch, or nothing yet; the poll sees it appear.
                self.polling = polling
            except (OSError, WatchfilesRustInternalError):
                # The system's own words for this speak of a full disk, which has nothing to do with it.
                self.polling = NO_WATCHER
            self._again.wait(self._retry_s)

    def _told_apart(self) -> tuple[list[str], str]:
        """The folders in which every change is told of, and why the others are polled, or "".

        A watch on a shared volume costs a round trip for each folder, and brings only what this machine changes.
        """
        kinds = {folder: self._shared_kind(Path(folder)) for folder in self._folders}
        shared = sorted(set(filter(None, kinds.values())))
        return [
            folder for folder in self._folders if not kinds[folder]
        ], f"polling: {', '.join(shared)}" if shared else ""

    def _listen(self, watch: Callable[..., set[tuple[int, str]] | str]) -> None:
        while not self._again.is_set():
            told = watch(_GROUP_MS, _STEP_MS, 0, self._again)
            if isinstance(told, str):
                if told != "timeout":
                    return
                continue
            with self._wake:
                self._paths.update(path for _, path in told)
                self._wake.notify_all()
