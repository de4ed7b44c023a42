"""Whether the process that polls and continues trials is alive, told by the files it rewrites on every pass."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kevtui import format as figures
from kevtui.observe import derive
from kevtui.observe.snapshot import Study, Watcher, WatcherState
from kevtui.observe.sources import Sources

if TYPE_CHECKING:
    from kev.records.watcher import WatcherRecord

DONE = "done"


def view_watcher(studies: tuple[Study, ...], sources: Sources) -> Watcher:
    """By its own sign of life, which it renews on every pass; else by watch.json.

    An earlier engine has only the latter, and renews each of them on every pass: the study whose file has stood still
    for longest, of those with work left, then tells. A settled study needs no watcher.
    """
    own = _by_its_own_sign(sources)
    if own is not None:
        return own
    found = []
    for study in studies:
        path = sources.watch_path(study.name)
        age_s = sources.age_s(path)
        if age_s is not None:
            unsettled = not _settled(study.name, sources)
            found.append((unsettled, age_s, sources.shown(path)))
    if not found:
        return Watcher(WatcherState.NONE)
    unsettled, age_s, source = max(found) if any(work for work, _, _ in found) else min(found)
    return Watcher(derive.watcher_state(age_s, unsettled=unsettled), derive.coarse(age_s), source)


def _by_its_own_sign(sources: Sources) -> Watcher | None:
    found = sources.watcher()
    if found is None:
        return None
    path, record = found
    age_s = sources.age_s(path)
    if age_s is None or sources.target.round not in (None, record.round):
        return None
    state = derive.watcher_state(age_s, unsettled=record.state != DONE)
    return Watcher(state, derive.coarse(age_s), sources.shown(path), _silence(record))


def _silence(record: "WatcherRecord") -> str:
    """What the provider does not answer, in words. Neither ends anything: what runs is asked about again."""
    if record.unreachable_since is not None:
        return f"the provider has not answered since {_clock(record.unreachable_since)}; it is asked again on each pass"
    if record.throttled_since is not None:
        return f"asked to slow down since {_clock(record.throttled_since)}; it waits as it was told"
    return ""


def _clock(seconds: float) -> str:
    return figures.clock(datetime.fromtimestamp(seconds, UTC))


def _settled(study: str, sources: Sources) -> bool:
    watch, spawn = sources.watch(study), sources.spawn(study)
    if watch is None:
        return False
    labels = {*watch.calls, *(spawn.calls if spawn else ())}
    return all(label in watch.calls and watch.calls[label].settled for label in labels)
