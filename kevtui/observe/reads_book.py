"""The launched reads of a round: their intents and logs, followed between passes."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from kev.errors import DamagedFile, NotFound
from kevtui.observe.lister import Signature
from kevtui.observe.log_tail import Tailing
from kevtui.observe.money_view import bound_of_reads
from kevtui.observe.reads_view import Launch, ReadLog, read_log, timeout_of_cell, view_reads
from kevtui.observe.snapshot import Reads, ReadState
from kevtui.observe.sources import Sources

if TYPE_CHECKING:
    from kev.records.spec import RoundSpec


class ReadsBook:
    """Remembers what the log of each launch said."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._logs: dict[str, tuple[Signature, Tailing, ReadLog]] = {}
        self._launches: dict[str, Launch] = {}

    def view(self, spec: RoundSpec | None, *, candidates: Collection[str] = (), now_unix: float) -> Reads:
        """The matrix of the round; empty without a spec."""
        if spec is None:
            return Reads()
        self._launches = {}
        for arm in spec.arms:
            for name, intent in self._sources.intents(spec.round, arm):
                self._launches[name] = Launch(name, intent, tuple(self._logs_of(name)))
        return view_reads(spec, has_rows=self._sources.has_rows, launches=self._launches.values(),
                          record_of=self._sources.read_record,
                          candidates=candidates, now_unix=now_unix)  # fmt: skip

    def bounds(self, spec: RoundSpec | None, reads: Reads) -> dict[str, Decimal | None]:
        """Launch -> the most that its reads which have not landed can still cost."""
        if spec is None:
            return {}
        from kev.records.spec import DEFAULT_GPU

        timeouts: dict[str, list[float]] = {}
        for cell in reads.cells:
            if cell.state in (ReadState.IN_FLIGHT, ReadState.OVERDUE):
                name = next(
                    (n for n, launch in self._launches.items() if launch.timeout_s(cell.directory) is not None), ""
                )
                if not name:
                    continue  # a read with a record of its own: the session's state has its bound
                timeouts.setdefault(name, []).append(timeout_of_cell(spec, cell, self._launches.get(name)))
        return {name: bound_of_reads(spec.gpu or DEFAULT_GPU, seconds) for name, seconds in timeouts.items()}

    def _logs_of(self, launch: str) -> list[ReadLog]:
        found = []
        for name, signature in self._sources.lister.files(self._sources.runs).items():
            if not (name.startswith(f"{launch}-") and name.endswith(".log") and name[len(launch) + 1 : -4].isdigit()):
                continue
            path = f"{self._sources.runs}/{name}"
            known = self._logs.get(path)
            if known is None or known[0] != signature:
                tail = known[1] if known else self._sources.tail(Path(path))
                self._logs[path] = known = (signature, tail, _read_on(tail, known[2] if known else ReadLog({})))
            found.append(known[2])
        return found


def _read_on(tail: Tailing, before: ReadLog) -> ReadLog:
    more = True
    while more:
        try:
            piece = tail.read()
        except (NotFound, DamagedFile):
            return before
        more = piece.more
        if piece.restarted:
            before = ReadLog({})
        new = read_log(piece.lines)
        before = ReadLog({**before.failed, **new.failed}, new.progress or before.progress)
    return before
