"""The files of a target on a volume of another machine, read many at a time before anything asks for them."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kev import files
from kev.errors import KevError
from kevtui.observe import mounts
from kevtui.observe.far_lister import ask
from kevtui.observe.lister import Signature
from kevtui.observe.log_tail import FIRST_READ, Tail, Tailing
from kevtui.observe.sources import MAX_SMALL_BYTES, Sources
from kevtui.observe.target import Target

RECORDS = frozenset(("result.json", "failed.json", "latest.json", "attempt.json"))
"""What each trial has one of."""

LOGS = frozenset(("train.log", "metrics.jsonl"))


def sources_of(target: Target, leases: Path) -> Sources:
    """The sources of `target` that suit the volume which its runs lie on."""
    far = mounts.shared_kind(target.root / "runs")
    return FarSources(target, leases) if far else Sources(target, leases)


class TailAhead:
    """A tail whose next lines were read before they are asked for."""

    def __init__(self, tail: Tailing) -> None:
        self._tail = tail
        self._answer: Tail | KevError | None = None
        self._old = False

    def ask(self) -> None:
        """Read what `read` is to give."""
        if self._answer is not None:
            # Not taken when it was read; there is more by now.
            self._old = True
            return
        try:
            self._answer = self._tail.read()
        except KevError as error:
            self._answer = error

    def read(self) -> Tail:
        answer, self._answer = self._answer, None
        old, self._old = self._old, False
        if answer is None:
            return self._tail.read()
        if isinstance(answer, KevError):
            raise answer
        return replace(answer, more=answer.more or old)


class FarSources(Sources):
    """`Sources` for which a pass over hundreds of trials takes a few round trips in a row, and not some for each."""

    def __init__(self, target: Target, leases: Path) -> None:
        super().__init__(target, leases)
        self._values: dict[str, Any] = {}
        self._tails: dict[str, TailAhead] = {}
        self._unclaimed: dict[str, TailAhead] = {}
        """Tails that were made here, before whoever follows the file asked for one."""
        self._asked: dict[str, Signature] = {}

    def begin(self, *, now_unix: float, monotonic: float) -> None:
        super().begin(now_unix=now_unix, monotonic=monotonic)
        self._values.clear()

    def read_ahead(self, studies: Sequence[str], changed: Set[str]) -> None:
        questions: list[Callable[[], None]] = []
        for path, signature in self._moved(frozenset(studies), changed):
            name = path.rpartition("/")[2]
            if name in RECORDS and not self.cache.is_current(path, signature):
                questions.append(partial(self._read, path))
            elif name in LOGS and self._asked.get(path) != signature:
                self._asked[path] = signature
                questions.append(self._tail_of(path).ask)
        ask(questions)

    def _moved(self, studies: frozenset[str], changed: Set[str]) -> Iterator[tuple[str, Signature]]:
        """The files in the changed folders of trials of `studies`, and in those of leases."""
        for folder in changed:
            study, _, below = folder.removeprefix(f"{self.runs}/").partition("/")
            if (below and study in studies) or folder.startswith(f"{self.leases}/"):
                for name, signature in self.lister.files(folder).items():
                    yield f"{folder}/{name}", signature

    def _read(self, path: str) -> None:
        try:
            self._values[path] = files.read_json(Path(path), limit=MAX_SMALL_BYTES)
        except KevError as error:
            self._values[path] = error

    def load(self, path: Path, *, limit: int = files.MAX_JSON_BYTES) -> Any:
        if limit != MAX_SMALL_BYTES or str(path) not in self._values:
            return super().load(path, limit=limit)
        value = self._values.pop(str(path))
        if isinstance(value, KevError):
            raise value
        return value

    def _tail_of(self, path: str) -> TailAhead:
        known = self._tails.get(path)
        if known is None:
            # As the log of a trial asks for it.
            tail = super().tail(Path(path), carriage_returns=path.endswith("/train.log"))
            known = self._tails[path] = self._unclaimed[path] = TailAhead(tail)
        return known

    def tail(self, path: Path, *, carriage_returns: bool = True, first_read: int = FIRST_READ) -> Tailing:
        ready = self._unclaimed.pop(str(path), None)
        if ready is None:
            tail = super().tail(path, carriage_returns=carriage_returns, first_read=first_read)
            ready = self._tails[str(path)] = TailAhead(tail)
        return ready
