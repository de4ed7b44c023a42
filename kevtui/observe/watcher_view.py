"""Whether the process that polls and continues trials is alive, told by the files it rewrites on every pass."""

from kevtui.observe import derive
from kevtui.observe.snapshot import Study, Watcher, WatcherState
from kevtui.observe.sources import Sources


def view_watcher(studies: tuple[Study, ...], sources: Sources) -> Watcher:
    """The one silent for longest of those with work left; a settled study needs no watcher."""
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


def _settled(study: str, sources: Sources) -> bool:
    watch, spawn = sources.watch(study), sources.spawn(study)
    if watch is None:
        return False
    labels = {*watch.calls, *(spawn.calls if spawn else ())}
    return all(label in watch.calls and watch.calls[label].settled for label in labels)
