"""Where alerts are taken care of while a dashboard is open: told, acknowledged, and written down by who may write."""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from kevtui.alerting.herald import Herald
from kevtui.observe.snapshot import Alert, Snapshot

CLOSE_S: Final = 0.5
"""How long leaving waits for what is being written down."""


class Writer(Protocol):
    """What may write; a dashboard that only looks has none, and keeps what it is told to itself."""

    def keep_alerts(self, session: str | None, state_file: str | None, alerts: Iterable[Alert]) -> None: ...
    def acknowledge(self, session: str | None, state_file: str | None, alerts: Iterable[Alert]) -> None: ...
    def withdraw(self, session: str | None, state_file: str | None) -> None: ...


class AlertDesk:
    """Every method is for the loop: none waits for a disk."""

    def __init__(self, herald: Herald, *, complain: Callable[[str], object]) -> None:
        """`complain` is called from a thread with what could not be written down."""
        self._herald = herald
        self._notes = _Notes(complain)
        self._snapshot: Snapshot | None = None
        self._kept: frozenset[tuple[str, str, str]] | None = None

    def marked(self, snapshot: Snapshot) -> Snapshot:
        """`snapshot` with what was acknowledged here marked so; the same object where that is nothing."""
        self._snapshot = snapshot
        alerts = self._herald.book.marked(snapshot.alerts)
        return snapshot if alerts is snapshot.alerts else replace(snapshot, alerts=alerts)

    def take(self, snapshot: Snapshot, writer: Writer | None) -> None:
        """Tell what is news, and have it written down."""
        if self._herald.take(snapshot) is not None or (self._kept is None) is not (writer is None):
            self.writer_changed(writer)

    def writer_changed(self, writer: Writer | None) -> None:
        """Have written down what stands, by whoever may write now; nobody, where that is None."""
        if writer is None or self._snapshot is None:
            self._kept = None
            return
        standing = self._herald.book.standing
        kept = frozenset((alert.id, str(alert.severity), alert.condition) for alert in standing)
        if kept != self._kept:
            self._kept = kept
            session, state_file = self._snapshot.session, self._snapshot.state_file
            self._notes.take(partial(writer.keep_alerts, session, state_file, standing))

    def acknowledge(self, alerts: Iterable[Alert], writer: Writer | None) -> Snapshot | None:
        """Somebody knows of `alerts` as they are; the last Snapshot as it is now."""
        alerts = tuple(alerts)
        for alert in alerts:
            self._herald.book.acknowledge(alert)
        if self._snapshot is None:
            return None
        if writer is not None:
            session, state_file = self._snapshot.session, self._snapshot.state_file
            self._notes.take(partial(writer.acknowledge, session, state_file, alerts))
        return self.marked(self._snapshot)

    def withdraw(self, writer: Writer | None) -> Snapshot | None:
        """Nobody knows of anything; the last Snapshot as it is now. What stands in the file goes with its next look."""
        self._herald.book.withdraw()
        if self._snapshot is not None and writer is not None:
            self._notes.take(partial(writer.withdraw, self._snapshot.session, self._snapshot.state_file))
        return self._snapshot

    def close(self) -> None:
        self._herald.close()
        self._notes.close()


class _Notes:
    """Carries out what may wait for a disk in a thread, one after the other; a trouble is told once in a row."""

    def __init__(self, complain: Callable[[str], object]) -> None:
        self._complain = complain
        self._guard = threading.Lock()
        self._waiting: list[Callable[[], object]] = []
        self._thread: threading.Thread | None = None
        self._trouble = ""

    def take(self, note: Callable[[], object]) -> None:
        with self._guard:
            self._waiting.append(note)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="alert-notes", daemon=True)
                self._thread.start()

    def close(self) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(CLOSE_S)

    def _work(self) -> None:
        while True:
            with self._guard:
                if not self._waiting:
                    self._thread = None
                    return
                note = self._waiting.pop(0)
            trouble = ""
            try:
                note()
            except Exception as error:
                # The screen goes on, whatever the disk says.
                trouble = str(error) or type(error).__name__
            if trouble and trouble != self._trouble:
                with suppress(Exception):  # the screen is gone
                    self._complain(f"alerts cannot be written down: {trouble}")
            self._trouble = trouble
