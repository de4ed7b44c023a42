"""The state behind the BenchSnapshots of one target: what was read, what was last good, when to look again."""

from pathlib import Path
from typing import Final

from kev.clock import Clock
from kevtui.bench.comparison_view import ComparisonView
from kevtui.bench.files_cache import FilesCache
from kevtui.bench.machine import MachineWatch
from kevtui.bench.snapshot import BenchSnapshot
from kevtui.bench.target import BenchTarget
from kevtui.bench.workspace_view import WorkspaceView, store_of
from kevtui.observe.changes import Changes


class BenchObserver:
    """Looks at a bench whenever it is asked to; it writes nothing. One thread at a time, but `close` from any."""

    pace_s: Final = None

    def __init__(
        self, target: BenchTarget, *, clock: Clock, poll: bool = False, machine: MachineWatch | None = None
    ) -> None:
        self._target = target
        self._clock = clock
        self._cache = FilesCache()
        self._machine = machine or MachineWatch()
        self._view: WorkspaceView | ComparisonView
        if target.is_results:
            self._view = ComparisonView(target.path, self._cache)
        else:
            self._view = WorkspaceView(target.path, self._cache, clock)
        # Not the folders below: the models, the data and their links hold more than a watch of the system may.
        self._changes = Changes(self._folders(), poll=poll, recursive=False)

    def observe(self) -> BenchSnapshot:
        """What is known now."""
        self._changes.take()
        now = self._clock.now()
        self._cache.begin(self._clock.monotonic())
        view = self._view
        run = view.look(now) if isinstance(view, WorkspaceView) else None
        comparison = view.look(now) if isinstance(view, ComparisonView) else None
        top = self._target.path.parent if self._target.is_results else self._target.path
        return BenchSnapshot(
            title=self._target.title,
            taken_at=now,
            path=str(self._target.path),
            run=run,
            comparison=comparison,
            machine=self._machine.look(),
            findings=(*self._cache.findings(top), *view.findings()),
            polling=self._changes.polling,
        )

    def wait(self, timeout_s: float) -> bool:
        """Block until something may have changed, at most `timeout_s`; true if so."""
        return self._changes.wait(timeout_s)

    def close(self) -> None:
        self._changes.close()

    def _folders(self) -> list[Path]:
        path = self._target.path
        return [path.parent] if self._target.is_results else [path, path / "reports", store_of(path).parent]
