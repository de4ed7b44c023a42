"""A run of the agent bench in a container: its records, without models, under /autorl/<name> on the runs volume.

The run itself is on the container's own disk, where the links and the many small writes of a workspace cost nothing.
What tells of it is copied and committed while it goes on, so that it can be watched, and that a time-out loses little.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kev import files
from kev.autorl.workspace import GRADER, STORE
from kev.errors import NotFound, Refused
from kev.model.places import mounted
from kev.worker.container import Container
from kev.worker.orders import AgentOrder
from kev.worker.sources import check_sources

AUTORL = "autorl"
COPY_SECONDS = 15.0
LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is a record; what is larger is a model, or a log that nobody will read."""

LEFT_OUT = frozenset({"output", "models", "data", ".training_data"})
"""Folders of a run that hold models and data."""


def run_agent(order: AgentOrder, container: Container, show: Callable[[str], None]) -> dict[str, Any]:
    """See the run that `order` names through, and commit its records.

    Returns its row of results.csv with `why` where it has no verdict. Raises Refused where the name has been used, for
    a run cannot be continued, and for other sources than the launcher's; NotFound for what is nowhere.
    """
    from kev.autorl.agent_folder import open_agent, shipped_agents
    from kev.autorl.grading_settings import GradingSettings
    from kev.autorl.runner import Order as RunOrder
    from kev.autorl.runner import run_agent as see_through
    from kev.autorl.tasks import open_task

    check_sources(order, container)
    container.runs.reload()
    home = container.runs.path / AUTORL / order.name
    if home.exists():
        raise Refused(f"/runs/{AUTORL}/{order.name}: is there already; a run is not continued, use a new name")
    base = _place(order.model, container)
    if not base.is_dir():
        raise NotFound(f"{order.model}: no such directory in the container")
    agent = order.agent if order.agent in shipped_agents() else str(_place(order.agent, container))
    task = str(_place(order.task, container)) if order.task.startswith("/") else order.task
    with tempfile.TemporaryDirectory(prefix="kev-agent-") as scratch:
        root = Path(scratch) / "autorl"
        wanted = RunOrder(
            agent=open_agent(agent), task=open_task(task), base=base, root=root,
            settings=GradingSettings(float(order.seconds), order.submissions, "strict", "auto", float(order.seconds)),
        )  # fmt: skip
        records = Records(root, home, container)
        records.keep()
        try:
            found = see_through(wanted, say=lambda words: show(f"[agent] {words}"))
        finally:
            records.finish()
    return found.to_json()


def _place(name: str, container: Container) -> Path:
    """A directory of either volume, by what the launcher calls it."""
    if not name.startswith("/hf/"):
        return container.place(name)
    place = mounted(name)
    if ".." in place.parts:
        raise Refused(f"{name!r:.120}: is no path on the volume")
    return place


@dataclass
class Records:
    """Copies what tells of the runs under `root` to `home`, every now and then and at the end."""

    root: Path
    home: Path
    container: Container
    seconds: float = COPY_SECONDS
    _copied: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def keep(self) -> None:
        """Begin to copy, in a thread."""
        self._thread = threading.Thread(target=self._watch, name="records", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Copy what is left, and commit."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.copy()
        self.container.runs.commit()

    def copy(self) -> bool:
        """Copy what changed; whether anything did."""
        changed = False
        for source in records_in(self.root):
            try:
                status = source.stat()
                mark = (status.st_mtime_ns, status.st_size)
                if status.st_size <= LARGEST and self._copied.get(source) != mark:
                    target = self.home / source.relative_to(self.root)
                    files.write_through(target, partial(shutil.copyfile, source))
                    self._copied[source], changed = mark, True
            except FileNotFoundError:
                continue  # replaced at this very moment: the next look finds it
        return changed

    def _watch(self) -> None:
        while not self._stop.wait(self.seconds):
            try:
                if self.copy():
                    self.container.runs.commit()
            except Exception:  # the platform's own errors are of many kinds; the last commit tells of them
                continue


def records_in(root: Path) -> Iterator[Path]:
    """The files under `root` that tell of runs: no links and no models, and of what the grader keeps only its store.

    The grader's key is nobody else's.
    """
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if path.is_symlink() or path.name in LEFT_OUT:
            continue
        if path.is_dir():
            yield from records_in(path)
        elif path.name == STORE or GRADER not in path.parts:
            yield path
