"""The lister for a volume of another machine, where every question is a round trip.

A sweep asks about thousands of files. Asked one after another they take as long as all their round trips together;
here many are under way at once, level by level, and the sweep then finds the answers.
"""

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kevtui.observe.lister import RELIST_EVERY, Lister, Listing, Rule

AT_ONCE = 16
"""Questions under way at the same time."""

_LEAST_EACH = 4
"""A thread more for every so many questions: few are not worth it."""

Place = tuple[str, str, tuple[str, ...]]
"""(top folder of the tree, folder, folders below the top that lead to it)."""


class FarLister(Lister):
    """A `Lister` whose sweeps take a few round trips for each level of folders, however many files there are."""

    def __init__(self, trees: dict[Path, tuple[Rule, Rule]]) -> None:
        super().__init__(trees)
        self._stats: dict[str, os.stat_result | OSError] = {}
        self._listings: dict[str, Listing | OSError] = {}

    def sweep(self) -> bool:
        self._ask_ahead()
        try:
            return super().sweep()
        finally:
            # What is asked later is asked anew.
            self._stats.clear()
            self._listings.clear()

    def _ask_ahead(self) -> None:
        number = self._sweeps + 1
        relist = number % RELIST_EVERY == 0
        level: list[Place] = [(top, top, ()) for top in self._trees]
        while level:
            level = [place for place in level if not self._is_settled(place[1], number)]
            self._ask_stats([path for _, path, _ in level])
            stamps = {path: answer.st_mtime_ns for _, path, _ in level
                      if not isinstance(answer := self._stats[path], OSError)}  # fmt: skip
            there = [place for place in level if place[1] in stamps]
            kept = {path for path, stamp_ns in stamps.items() if self._keeps_names(path, stamp_ns, relist)}
            to_list = [place for place in there if place[1] not in kept]
            listings = ask([partial(super(FarLister, self)._list, *place) for place in to_list])
            self._listings |= {place[1]: listing for place, listing in zip(to_list, listings, strict=True)}
            self._ask_stats([f"{path}/{name}" for path in kept for name in self.files(path)])
            level = [
                (top, f"{path}/{name}", (*parts, name)) for top, path, parts in there for name in self._below(path)
            ]

    def _ask_stats(self, paths: list[str]) -> None:
        self._stats |= zip(paths, ask([partial(os.stat, path) for path in paths]), strict=True)

    def _below(self, path: str) -> tuple[str, ...]:
        listing = self._listings.get(path)
        if listing is None:
            return self.children(path)
        return () if isinstance(listing, OSError) else listing[1]

    def _stat(self, path: str) -> os.stat_result:
        answer = self._stats.pop(path, None)
        if isinstance(answer, OSError):
            raise answer
        return answer or super()._stat(path)

    def _list(self, top: str, path: str, parts: tuple[str, ...]) -> Listing:
        answer = self._listings.pop(path, None)
        if isinstance(answer, OSError):
            raise answer
        return answer or super()._list(top, path, parts)


def ask(questions: Sequence[Callable[[], Any]]) -> list[Any]:
    """The answers in the order of the questions; an OSError stands for itself. The questions are asked from threads."""
    answers: list[Any] = [None] * len(questions)
    numbers = iter(range(len(questions)))  # taken from by every thread

    def work() -> None:
        for number in numbers:
            try:
                answers[number] = questions[number]()
            except OSError as error:
                answers[number] = error

    # Daemons, as every thread that may hang on a dead volume.
    helping = [threading.Thread(target=work, name="ask", daemon=True)
               for _ in range(min(AT_ONCE, len(questions) // _LEAST_EACH) - 1)]  # fmt: skip
    for thread in helping:
        thread.start()
    work()
    for thread in helping:
        thread.join()
    return answers
